"""The transaction coordinator: transactional ids, their producer ids and epochs, and the outcome of their transactions.

`coordinator.TransactionCoordinator` is what the APIs talk to; the other modules are its parts, one concept each. State
is kept in `__transaction_state` and nowhere else. What a partition knows of its producers is `millstream.log`'s matter.
"""
