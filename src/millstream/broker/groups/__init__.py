"""The group coordinator: groups of consumers, in both protocols, and the offsets they commit.

`coordinator` is the way in. `classic*` is the classic protocol, `consumer*` (with `assignors` and
`regular_expressions`) the one of KIP-848, `offsets` and `offset_store` the committed offsets, `records` and `loading`
what of all that is on disk. Nothing here does I/O or knows about sockets.
"""
