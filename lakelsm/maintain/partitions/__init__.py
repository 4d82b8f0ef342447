"""Operations on whole partitions: list, drop, expire by age, and mark as done."""
