// Opens each page at each width, and prints what it finds as JSON.
const read = (page, width) => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.width = width;
  frame.height = 900;
  frame.style.border = 0;
  frame.onload = () => setTimeout(() => {
    const view = frame.contentDocument;
    const all = [...view.querySelectorAll('main *')];
    const beyond = all.filter(element => {
      if (element.getBoundingClientRect().right <= width) return false;
      for (let up = element.parentElement; up; up = up.parentElement) {
        if (getComputedStyle(up).overflowX !== 'visible') return false;
      }
      return true;
    });
    const found = {
      page,
      width,
      scroll: view.documentElement.scrollWidth,
      beyond: beyond.slice(0, 3).map(element => `${element.tagName} ${element.textContent.slice(0, 60)}`),
      pictures: [...view.images].filter(image => !image.naturalWidth).map(image => image.src),
      ids: [...view.querySelectorAll('[id]')].map(element => element.id),
      links: [...view.querySelectorAll('main [href]')].map(element => element.href.baseVal ?? element.href),
      loads: [...view.querySelectorAll('[src], link[href]')].map(element => element.src || element.href),
    };
    const shown = document.createElement('pre');
    shown.textContent = JSON.stringify(found);
    document.body.append(shown);
    frame.remove();
    done();
  }, 20);
  frame.src = new URL(`book/${page}`, location.href);
  document.body.append(frame);
});
(async () => {
  for (const page of pages) for (const width of [420, 1200]) await read(page, width);
})();
