"""Typed configuration: YAML in, frozen models or errors with line numbers out.

The models (`sidecar`), what this version does not do yet (`unsupported`), the reader (`document`, `load`), secrets in
files (`secret_files`) and the JSON Schema (`schema`). Nothing here opens a socket, runs a loop or logs; the only files
read are those that a caller names.
"""
