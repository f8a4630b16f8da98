"""Takes report.png, the picture of a report, in a real browser. Run by `make pictures`."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from lastarm import SuccessiveHalving, search
from lastarm.cli.demo import ARMS, BUDGET, SPACE, DigitsNetwork


def main() -> None:
    """Search, write the report, open it and pick the arm that came second."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        journal = Path(folder) / "digits.jsonl"
        policy = SuccessiveHalving(ARMS, BUDGET)
        report = search(DigitsNetwork(), SPACE, policy=policy, journal=journal).report(
            Path(folder) / "report.html"
        )
        chromium = shutil.which("chromium") or "/usr/bin/chromium"
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 980})
        page.goto(report.as_uri())
        page.wait_for_selector("body[data-drawn]", state="attached")
        page.locator("#runner-up button").click()
        page.locator("#curves").evaluate(
            "section => scrollTo({ top: section.offsetTop + 32, behavior: 'instant' })"
        )
        page.wait_for_selector("#story-chart svg")
        page.screenshot(path=Path(__file__).with_suffix(".png"))
        browser.close()


if __name__ == "__main__":
    main()
