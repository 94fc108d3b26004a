#!/bin/sh
# A supervisor that is started as `nohup` and `command &` start programs: deaf to signals.
trap '' HUP INT QUIT TSTP
exec "$REAL_SUPERVISOR" "$@"
