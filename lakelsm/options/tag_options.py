"""Options of tags: those that follow commits by themselves, and how long tags live."""

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
    """Tags part of TableOptions. Durations are milliseconds."""

    tag_automatic_creation: TagCreation = option(
        "tag.automatic-creation",
        enum_kind(TagCreation),
        TagCreation.NONE,
        "Whether a commit is followed by a tag: once for each period, by the time of commits or by their watermark, or "
        "for each day on which something was committed.",
    )
    tag_creation_period: TagPeriod = option(
        "tag.creation-period", enum_kind(TagPeriod), TagPeriod.DAILY, "The periods that automatic tags are of."
    )
    tag_creation_period_duration: int | None = option(
        "tag.creation-period-duration",
        DURATION,
        None,
        "A period of any length, in place of tag.creation-period; its tags have names as 'yyyyMMddHHmm'.",
        low=60_000,
        high=CENTURY,
    )
    tag_creation_delay: int = option(
        "tag.creation-delay", DURATION, 0, "How long after the end of a period its tag is made; less than the period."
    )
    tag_period_formatter: TagFormat = option(
        "tag.period-formatter",
        enum_kind(TagFormat),
        TagFormat.WITH_DASHES,
        "Names of automatic tags: 'yyyy-MM-dd HH', 'yyyyMMdd HH' or 'yyyyMMddHH', of daily ones without the hour.",
    )
    tag_automatic_completion: bool = option(
        "tag.automatic-completion", BOOLEAN, False, "Periods without a commit get their tag of a later one."
    )
    tag_num_retained_max: int | None = option(
        "tag.num-retained-max", INT, None, "Automatic tags that are kept at most; the oldest go.", low=1
    )
    tag_default_time_retained: int | None = option(
        "tag.default-time-retained", DURATION, None, "How long tags live that are made without a time; else for ever."
    )
    tag_time_expire_enabled: bool = option(
        "tag.time-expire-enabled", BOOLEAN, True, "Tags that are past their time are deleted after a commit."
    )
    tag_batch_customized_name: str | None = option(
        "tag.batch.customized-name",
        TEXT,
        None,
        "The name of the tag of tag.automatic-creation 'batch', which is replaced each time; by default "
        "'batch-write-yyyy-MM-dd'.",
    )
    sink_process_time_zone: tzinfo | None = option(
        "sink.process-time-zone",
        ZONE,
        None,
        "The time zone of tags by the time of commits; by default this machine's.",
    )
    sink_watermark_time_zone: tzinfo = option(
        "sink.watermark-time-zone", ZONE, timezone.utc, "The time zone of tags by watermark.", default_text="UTC"
    )

    @property
    def tag_period_millis(self) -> int:
        """The length of the periods that automatic tags are of."""
        return self.tag_creation_period_duration or _PERIODS[self.tag_creation_period]
