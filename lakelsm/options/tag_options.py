"""Options of tags: automatic creation and expiry."""

# ruff: noqa: RUF009 (option() is a dataclass field specifier)
from __future__ import annotations

from dataclasses import dataclass
from datetime import timezone, tzinfo

from lakelsm.options.option import BOOLEAN, CENTURY, DURATION, INT, TEXT, ZONE, enum_kind, option
from lakelsm.options.option_enums import TagCreation, TagFormat, TagPeriod

_HOUR = 3_600_000
_PERIODS = {TagPeriod.DAILY: 24 * _HOUR, TagPeriod.HOURLY: _HOUR, TagPeriod.TWO_HOURS: 2 * _HOUR}


@dataclass(frozen=True, kw_only=True)
class TagOptions:
    """The part of TableOptions for tags. Durations in milliseconds."""

    tag_automatic_creation: TagCreation = option(
        "tag.automatic-creation",
        enum_kind(TagCreation),
        TagCreation.NONE,
        "Automatic tags of commits: none, one for each period by the time of commits (process-time) or by their "
        "watermark (watermark), or one for each day with a commit (batch).",
    )
    tag_creation_period: TagPeriod = option(
        "tag.creation-period", enum_kind(TagPeriod), TagPeriod.DAILY, "Period of automatic tags."
    )
    tag_creation_period_duration: int | None = option(
        "tag.creation-period-duration",
        DURATION,
        None,
        "Period of automatic tags, of any length, instead of tag.creation-period. Tags are then named 'yyyyMMddHHmm'.",
        low=60_000,
        high=CENTURY,
    )
    tag_creation_delay: int = option(
        "tag.creation-delay",
        DURATION,
        0,
        "Time from the end of a period to the creation of its tag; less than the period.",
    )
    tag_period_formatter: TagFormat = option(
        "tag.period-formatter",
        enum_kind(TagFormat),
        TagFormat.WITH_DASHES,
        "Format of the names of automatic tags: 'yyyy-MM-dd HH', 'yyyyMMdd HH' or 'yyyyMMddHH'; daily tags without "
        "the hour.",
    )
    tag_automatic_completion: bool = option(
        "tag.automatic-completion", BOOLEAN, False, "Periods without a commit get a tag of a later snapshot."
    )
    tag_num_retained_max: int | None = option(
        "tag.num-retained-max", INT, None, "Maximum number of automatic tags; the oldest are deleted.", low=1
    )
    tag_default_time_retained: int | None = option(
        "tag.default-time-retained",
        DURATION,
        None,
        "Lifetime of tags that are created without one; by default unlimited.",
    )
    tag_time_expire_enabled: bool = option(
        "tag.time-expire-enabled", BOOLEAN, True, "Commits delete expired tags."
    )
    tag_batch_customized_name: str | None = option(
        "tag.batch.customized-name",
        TEXT,
        None,
        "Name of the tag of tag.automatic-creation = 'batch', which each commit replaces; by default "
        "'batch-write-yyyy-MM-dd'.",
    )
    sink_process_time_zone: tzinfo | None = option(
        "sink.process-time-zone",
        ZONE,
        None,
        "Time zone of tags by the time of commits; by default this machine's.",
    )
    sink_watermark_time_zone: tzinfo = option(
        "sink.watermark-time-zone", ZONE, timezone.utc, "Time zone of tags by watermark.", default_text="UTC"
    )

    @property
    def tag_period_millis(self) -> int:
        """The length of the period of automatic tags, in milliseconds."""
        return self.tag_creation_period_duration or _PERIODS[self.tag_creation_period]
