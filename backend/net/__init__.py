"""The shell of the backend: sockets, timers, and the tasks that turn its pure parts into running nodes."""
