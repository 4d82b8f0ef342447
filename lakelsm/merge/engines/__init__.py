"""The merge engines that combine or choose rows, one file each (`deduplicate` is the kernel itself)."""
