#!/bin/sh
# Playwright removes a profile at the exit of its process, which `bun test` does not announce.
for argument; do
  case $argument in --user-data-dir=*) profile=${argument#*=} ;; esac
done
TMPDIR=$profile "$CHROMIUM" "$@"
rm -rf "$profile"
