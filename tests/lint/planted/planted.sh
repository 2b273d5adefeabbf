#!/bin/sh
# A fault that shellcheck must find.
rm -rf $1/x
