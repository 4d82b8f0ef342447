"""The periods of automatic tags, and the names of their tags, as in Paimon's `TagPeriodHandler`. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lakelsm.options import TableOptions, TagFormat, TagPeriod

_EPOCH = datetime(1970, 1, 1)
#: The format of the part after the year, by the format that parses a whole name.
_AFTER_YEAR = {
    "%Y-%m-%d": "-{0:%m}-{0:%d}",
    "%Y%m%d": "{0:%m%d}",
    "%Y-%m-%d %H": "-{0:%m}-{0:%d} {0:%H}",
    "%Y%m%d %H": "{0:%m%d} {0:%H}",
    "%Y%m%d%H": "{0:%m%d%H}",
    "%Y%m%d%H%M": "{0:%m%d%H%M}",
}


@dataclass(frozen=True)
class Periods:
    """Periods of one length. ``form`` is the format of their names. Times are wall clock times without a zone."""

    length: timedelta
    form: str

    @staticmethod
    def of(options: TableOptions) -> Periods:
        """Return the periods of a table's options."""
        length = timedelta(milliseconds=options.tag_period_millis)
        if options.tag_creation_period_duration is not None:
            return Periods(length, "%Y%m%d%H%M")
        style, period = options.tag_period_formatter, options.tag_creation_period
        if period is TagPeriod.DAILY:
            return Periods(length, "%Y-%m-%d" if style is TagFormat.WITH_DASHES else "%Y%m%d")
        if period is TagPeriod.TWO_HOURS or style is TagFormat.WITH_DASHES:
            return Periods(length, "%Y-%m-%d %H")
        return Periods(length, "%Y%m%d %H" if style is TagFormat.WITHOUT_DASHES else "%Y%m%d%H")

    def name(self, period: datetime) -> str:
        """Return the name of the tag of the period that begins at a time."""
        return f"{period.year:04d}" + _AFTER_YEAR[self.form].format(period)

    def period_of(self, name: str) -> datetime | None:
        """Return the period of a tag's name; None for another name. In names of days, text after a space is ignored."""
        day = name.split(" ")[0] if "%H" not in self.form else name
        try:
            period = datetime.strptime(day, self.form)
        except ValueError:
            return None
        return period if self.name(period) == day else None

    def last_ended(self, time: datetime) -> datetime:
        """Return the start of the last period that has ended at a time."""
        return time - (time - _EPOCH) % self.length - self.length
