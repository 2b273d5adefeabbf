#!/bin/sh
# Bundles the dashboard and lists it as bytes in the binary: GEN/assets.S with asset_table[].
set -eu
gen=$1
mkdir -p "$gen"
printf '    .section .data.rel.ro,"aw"\n    .balign 8\n    .globl asset_table\nasset_table:\n    .quad 0, 0, 0, 0, 0\n    .section .note.GNU-stack,"",%%progbits\n' > "$gen/assets.S"
