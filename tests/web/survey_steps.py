"""What respondents do in a browser, step by step."""

from __future__ import annotations

from conftest import DRINKS

PIXEL = b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1200, "height": 900}}


def order(page, part="list"):
    """The numbers of the items as the list shows them."""
    page.wait_for_selector("#rank:not([hidden])")
    return page.eval_on_selector_all(f"#{part} li", "rows => rows.map(row => Number(row.dataset.item))")


def ready(page, doubt="You have not moved anything"):
    """Say that an order is right that nobody made: the button wakes up late, so that a double tap says nothing."""
    page.wait_for_selector("#rank:not([hidden])")
    page.evaluate(
        "() => { const yes = document.querySelector('#sure [value=yes]'); window.changes = [];"
        "new MutationObserver(() => changes.push([yes.disabled, performance.now()]))"
        ".observe(yes, { attributeFilter: ['disabled'] }); }"
    )
    page.click("#done")
    assert doubt in page.locator("#sure-words").text_content()
    page.click("#sure [value=yes]")
    page.wait_for_selector("#send:not([hidden])")
    (asleep, began), (still, ended) = page.evaluate("changes")
    assert (asleep, still) == (True, False)
    assert ended - began > 450  # milliseconds


def copy(page, part="send"):
    return [DRINKS.index(name) for name in page.locator(f"#{part} .copy li .name").all_text_contents()]


def arrange(page, wanted):
    """Bring the list into an order with the buttons, as anybody may."""
    for item in reversed(wanted):
        page.click(f'#list [data-item="{item}"] .name')
        page.click("[data-move=top]")
        page.click(f'#list [data-item="{item}"] .name')
    assert order(page) == wanted
