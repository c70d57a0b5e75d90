"""The requests of groups and of their offsets, as the group service offers them to the modern port."""
