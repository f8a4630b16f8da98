"""The fault campaigns in their short form, and planted bugs that they must catch."""

from pathlib import Path

import pytest

from faults.all import CAMPAIGNS, PLANTED
from faults.campaign import Campaign
from faults.planted import Planted


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda campaign: campaign.name)
def test_campaign(campaign: Campaign, tmp_path: Path) -> None:
    figures = campaign.run(campaign.short, tmp_path)
    assert figures


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_a_campaign_catches(bug: Planted, tmp_path: Path) -> None:
    with bug.plant(), pytest.raises(AssertionError):
        bug.campaign.run(bug.times, tmp_path)
