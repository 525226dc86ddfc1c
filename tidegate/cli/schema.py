"""`tidegate schema sidecar` and `schema backend`: the JSON Schema of a configuration, for editors and pipelines."""

from __future__ import annotations

import json

import click

from config.schema import backend_schema, sidecar_schema


@click.group(invoke_without_command=False)
def schema() -> None:
    """Print the JSON Schema of a configuration.

    \b
    Example:
      tidegate schema sidecar > sidecar.schema.json
    """


@schema.command()
def sidecar() -> None:
    """Print the JSON Schema of the sidecar's configuration.

    It tells an editor the keys, their values and their meaning. Rules between keys, such as port
    ranges that must not overlap, are left to `tidegate check`.

    \b
    Example:
      tidegate schema sidecar > sidecar.schema.json
    """
    click.echo(json.dumps(sidecar_schema(), indent=2))


@schema.command()
def backend() -> None:
    """Print the JSON Schema of the backend's configuration.

    It tells an editor the keys, their values and their meaning. Rules between keys, such as ids
    that must be unique, are left to `tidegate check`.

    \b
    Example:
      tidegate schema backend > backend.schema.json
    """
    click.echo(json.dumps(backend_schema(), indent=2))
