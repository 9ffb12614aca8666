"""Names, contrast and focus of what a page shows."""

import devtools

#: What every page has for people who move by roles.
LANDMARKS = {"main", "navigation", "heading"}
INTERACTIVE = {"button", "link", "textbox", "searchbox", "checkbox", "combobox", "listbox", "option", "tab", "slider", "treeitem"}

CONTRAST = """
(() => {
  const parse = (text) => { const m = text.match(/[\\d.]+/g); return m ? m.map(Number) : [0, 0, 0, 0]; };
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a)); };
  const background = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      layers.push(colour);
      if ((colour[3] ?? 1) === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !element.getClientRects().length || element.closest('.visually-hidden, [disabled], option')) continue;
    if ([...(function*() { for (let e = element; e; e = e.parentElement) yield e; })()].some(e => getComputedStyle(e).opacity === '0')) continue;
    const style = getComputedStyle(element);
    const below = background(element);
    const [a, b] = [light(over(parse(element.closest('svg') ? style.fill : style.color), below)), light(below)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 600 || parseFloat(style.fontSize) >= 24;
    if (ratio < (isLarge ? 3 : 4.5)) bad.push(`${walk.currentNode.data.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return bad;
})()
"""


def check(page):
    """Fails if a landmark is missing, a control has no name, a text too little contrast in a theme, or Tab reaches nothing."""
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    nameless = [
        node for node in nodes
        if not node.get("ignored") and node.get("role", {}).get("value") in INTERACTIVE and not node.get("name", {}).get("value")]
    if nameless:
        raise devtools.PageError(f"controls without a name: {[node['role']['value'] for node in nameless]}")
    missing = LANDMARKS - {node.get("role", {}).get("value") for node in nodes if not node.get("ignored")}
    if missing:
        raise devtools.PageError(f"roles that no part of the page has: {missing}")
    for theme in ("light", "dark"):
        page.theme(theme)
        bad = page.run(CONTRAST)
        if bad:
            page.theme("light")
            raise devtools.PageError(f"too little contrast in {theme}: {bad[:8]}")
    page.theme("light")
    reached = set()
    for _ in range(12):
        page.key("Tab", number=9)
        reached.add(page.run("(() => { const e = document.activeElement; return e === document.body ? '' : e.tagName + e.innerText?.slice(0, 20); })()"))
    if len(reached - {""}) < 5:
        raise devtools.PageError(f"the Tab key reaches only {reached}")
    outlined = page.run("(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0; })()")
    if not outlined:
        raise devtools.PageError("the focus is not visible")
