// Reports sizes and contrasts of the page in which it runs to the page around it.
addEventListener('load', () => {
  const numbers = text => text.match(/[\d.]+/g).map(Number);
  const luminance = rgb => rgb.slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, k) => sum + part * [0.2126, 0.7152, 0.0722][k], 0);
  const paper = element => {
    for (; element; element = element.parentElement) {
      const colour = numbers(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = { width: innerWidth, scroll: document.documentElement.scrollWidth, dark: matchMedia('(prefers-color-scheme: dark)').matches, texts: 0, least: 99, where: '', small: 99 };
  for (const element of document.body.querySelectorAll('*')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width || element.tagName === 'STYLE' || element.tagName === 'SCRIPT') continue;
    const style = getComputedStyle(element);
    const svg = element.ownerSVGElement;
    const text = luminance(numbers(svg ? style.fill : style.color));
    const back = luminance(paper(element));
    const contrast = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    found.texts += 1;
    found.small = Math.min(found.small, parseFloat(style.fontSize) * scale);
    if (contrast < found.least) { found.least = contrast; found.where = element.textContent.slice(0, 40); }
  }
  parent.postMessage(found, "*");
});
