// What a reader would complain about, of the page in the one frame of this page; for browser.looked_at. It is in a frame, since
// a window has a least width. PRINT: rules for paper are applied as if this were paper; TALL: the height of a sheet.
function printed(sheet) {
  let rules;
  try { rules = [...sheet.cssRules]; } catch { return; }
  for (const rule of rules) {
    if (rule.media?.mediaText.includes('print')) rule.media.mediaText = 'all';
    else if (rule.media?.mediaText.includes('screen')) rule.media.mediaText = 'not all';
    else if (rule.media && /dark/.test(rule.media.mediaText)) rule.media.mediaText = 'not all';
  }
}
function channels(colour) {
  const found = colour.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
  return found.length < 4 ? [...found, 1] : found;
}
function luminance(rgb) {
  const [r, g, b] = rgb.slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function ground(element, view) {
  for (let at = element; at; at = at.parentElement) {
    const colour = channels(view.getComputedStyle(at).backgroundColor);
    if (colour[3] > 0.5) return colour;
  }
  return [255, 255, 255, 1];
}
function faint(page, view) {
  const found = [];
  for (const element of page.body.querySelectorAll('*')) {
    const words = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent.trim()).join('');
    const style = view.getComputedStyle(element), box = element.getBoundingClientRect();
    if (!words || !box.width || !box.height || style.visibility !== 'visible' || style.opacity < 1) continue;
    if (element.closest('[hidden], script, style, button[aria-pressed=false], [disabled], .md-skip')) continue;
    const ink = channels(element.closest('svg') ? style.fill : style.color);
    const [high, low] = [ink, ground(element, view)].map(luminance).sort((a, b) => b - a);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && style.fontWeight >= 600);
    const contrast = (high + 0.05) / (low + 0.05);
    if (ink[3] > 0.3 && contrast < (large ? 3 : 4.5)) found.push(`${contrast.toFixed(1)}: ${words.slice(0, 40)}`);
  }
  return found;
}
// What may be wider than the page lies in a box that scrolls; all else must end within the viewport.
function misplaced(page, view) {
  const outside = [], clipped = [];
  for (const element of page.body.querySelectorAll('*')) {
    if (element.closest('.scroll, pre') && !element.matches('.scroll, pre')) continue;
    if (element.closest('svg') && !element.matches('svg')) continue;
    const box = element.getBoundingClientRect();
    const name = element.tagName + ' ' + element.textContent.trim().slice(0, 40);
    if (box.width && (box.right > view.innerWidth + 0.5 || box.left < -0.5)) outside.push(name);
    const overflow = view.getComputedStyle(element).overflowX;
    if (overflow === 'hidden' && element.scrollWidth > element.clientWidth + 1) clipped.push(name);
  }
  return { outside, clipped };
}
window.onload = () => {
  const frame = document.querySelector('iframe'), page = frame.contentDocument, view = frame.contentWindow;
  if (PRINT) [...page.styleSheets].forEach(printed);
  const visible = (e) => e.getBoundingClientRect().height > 0 && view.getComputedStyle(e).visibility === 'visible';
  const tops = (name) => [...page.querySelectorAll(name)].filter(visible).map((e) => e.getBoundingClientRect());
  const figures = [...page.querySelectorAll('figure')].filter(visible);
  const found = document.createElement('pre');
  found.id = 'found';
  found.hidden = true;
  found.textContent = JSON.stringify({
    scroll: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    title: tops('h1')[0]?.bottom, picture: tops('figure svg, img')[0]?.bottom,
    faint: faint(page, view), ...misplaced(page, view), images: page.images.length,
    broken: [...page.images].filter((i) => !i.naturalWidth || i.getBoundingClientRect().width < 100).map((i) => i.alt || 'an image'),
    controls: [...page.querySelectorAll('input, select, nav, header.md-header, .tools')].filter(visible).map((e) => e.outerHTML.slice(0, 60)),
    cut: figures.filter((e) => view.getComputedStyle(e).breakInside !== 'avoid' || e.getBoundingClientRect().height > TALL)
      .map((e) => e.textContent.trim().slice(0, 60)),
  });
  document.body.append(found);
};
