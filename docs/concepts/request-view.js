// Shows a request to a drive as it moves head and platter, beside the same request aligned to the
// track. All times, angles and tracks come from request.js, which the drive model writes. Between
// the ends of two phases, this page only turns the platter at the drive's rotation and moves the
// head evenly.
(function () {
  'use strict';
  const root = document.getElementById('request-view');
  if (!root || typeof TRAXTENT_REQUESTS === 'undefined') return;
  const data = TRAXTENT_REQUESTS;
  const [SEEK, SWITCH, TRANSFER] = ['seek', 'track switch', 'transfer']
    .map((name) => data.phases.findIndex((phase) => phase.name === name));

  // The time in which the platter turns once on the page, in milliseconds.
  const SHOWN_REVOLUTION = 2500;
  // The radii of the tracks, from the first, and of the head's first position.
  const RADII = [86, 71, 56];
  const START_RADIUS = 34;
  const RING = 12;

  const style = document.createElement('style');
  style.textContent = `
    #request-view { border: 1px solid var(--table-border-color, #888); border-radius: 6px;
      padding: 10px; margin: 1em 0; color: var(--fg, inherit); }
    #request-view .controls { display: grid; gap: 6px 14px;
      grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); }
    #request-view label { display: block; font-size: 0.85em; }
    #request-view select, #request-view input { display: block; width: 100%;
      box-sizing: border-box; margin: 2px 0 0; }
    #request-view select, #request-view button { font: inherit; color: var(--fg, inherit);
      background: var(--bg, inherit); border: 1px solid var(--table-border-color, #888);
      border-radius: 4px; padding: 4px 8px; min-height: 2.2em; }
    #request-view .buttons { display: flex; flex-wrap: wrap; gap: 8px; margin: 10px 0;
      align-items: center; }
    #request-view .buttons button { min-width: 4.5em; }
    #request-view .buttons input { flex: 1 1 110px; margin: 0; width: auto; min-width: 90px; }
    #request-view .platters { display: grid; grid-template-columns: 1fr 1fr; gap: 8px;
      max-width: 560px; margin: 0 auto; }
    #request-view .platters > div { min-width: 0; text-align: center; font-size: 0.85em; }
    #request-view svg { width: 100%; height: auto; display: block; }
    #request-view .name { font-weight: bold; }
    #request-view .line { position: relative; height: 22px; margin: 2px 0 10px; }
    #request-view .line span { position: absolute; top: 0; bottom: 0; box-sizing: border-box;
      border: 0.5px solid var(--bg, #fff); opacity: 0.65; }
    #request-view .line .passing { opacity: 1; }
    #request-view .line i { position: absolute; top: -3px; bottom: -3px; width: 2px;
      margin-left: -1px; background: var(--fg, #000); }
    #request-view table { width: 100%; margin: 8px 0 0; font-size: 0.85em; }
    #request-view td, #request-view th { padding: 2px 6px; text-align: right; }
    #request-view td:first-child, #request-view th:first-child { text-align: left; }
    #request-view td b { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 5px;
      border: 1px solid var(--table-border-color, #888); }
    #request-view .caption { font-size: 0.85em; margin: 6px 0 0; }`;
  document.head.append(style);

  function html(tag, parent, text, className) {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    if (className) element.className = className;
    if (parent) parent.append(element);
    return element;
  }

  function svg(tag, parent, attributes) {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    if (parent) parent.append(element);
    return element;
  }

  // Returns an arc, clockwise from the top; angles are in revolutions.
  function arc(radius, from, length) {
    const at = (turn) => {
      const angle = 2 * Math.PI * turn;
      return `${(radius * Math.sin(angle)).toFixed(2)} ${(-radius * Math.cos(angle)).toFixed(2)}`;
    };
    const turn = Math.min(length, 0.9999);
    const middle = from + turn / 2;
    const part = (to) => `A${radius} ${radius} 0 0 1 ${at(to)}`;
    return `M${at(from)} ${part(middle)} ${part(from + turn)}`;
  }

  // Is the page dark? Its theme may differ from the system's.
  function isDark() {
    const colour = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g) || [];
    if (colour.length < 3 || colour[3] === '0') {
      return matchMedia('(prefers-color-scheme: dark)').matches;
    }
    return (Number(colour[0]) + Number(colour[1]) + Number(colour[2])) / 3 < 128;
  }

  // --- Controls ---

  root.textContent = '';
  const controls = html('div', root, '', 'controls');

  function labelled(text, tag) {
    const label = html('label', controls);
    const caption = html('span', label, text);
    return [html(tag, label), caption];
  }

  function range(caption, least, most, value) {
    const [input, text] = labelled(caption, 'input');
    Object.assign(input, { type: 'range', min: least, max: most, step: 1 });
    input.value = value;
    return [input, text];
  }

  const [driveSelect] = labelled('Drive', 'select');
  data.drives.forEach((drive, index) => {
    html('option', driveSelect, drive.model).value = index;
  });
  const [sizeSelect] = labelled('Request', 'select');
  const [startRange, startText] = range('', 1, data.eighths - 1, data.eighths / 2);
  const [angleRange, angleText] = range('', 0, data.eighths - 1, 0);

  const buttons = html('div', root, '', 'buttons');
  const play = html('button', buttons, 'Play');
  const step = html('button', buttons, 'Step');
  const back = html('button', buttons, 'Back');
  const time = html('input', buttons);
  Object.assign(time, { type: 'range', min: 0, step: 1 });
  time.setAttribute('aria-label', 'time since the request');
  const clock = html('span', buttons);

  const platters = html('div', root, '', 'platters');
  const lines = html('div', root);
  const table = html('table', root);
  const caption = html('p', root, '', 'caption');

  // --- The two requests ---

  let now = 0;
  let last = null;
  let sides = [];
  let longest = 1;

  const drive = () => data.drives[driveSelect.value];
  const size = () => drive().sizes[sizeSelect.value];
  const ms = (microseconds) => (microseconds / 1000).toFixed(2);

  // Returns the platter's angle under the head, in revolutions.
  const under = (microseconds) =>
    Number(angleRange.value) / data.eighths + microseconds / drive().revolution;

  // Returns a request's phases with begin, end, and the row of the track that the head is on.
  function phases(numbers) {
    const list = [];
    let begin = 0;
    let row = 0;
    for (let k = 0; k < numbers.length; k += 2) {
      const phase = numbers[k];
      list.push({ phase, begin, end: numbers[k + 1], row });
      begin = numbers[k + 1];
      if (phase === SWITCH) row += 1;
    }
    return list;
  }

  function side(start, name, colours) {
    const request = size().starts[start];
    const steps = phases(request.requests[angleRange.value]);
    const colour = colours[isDark() ? 1 : 0];
    return { request, steps, name, colour, mean: request.mean, end: steps[steps.length - 1].end };
  }

  // Returns the colour of a phase on this page.
  function phaseColour(one, phase) {
    return phase === TRANSFER ? one.colour : data.phases[phase].colour[isDark() ? 1 : 0];
  }

  function drawPlatter(one) {
    const box = html('div', platters);
    html('div', box, one.name, 'name').style.color = one.colour;
    const picture = svg('svg', box, { viewBox: '-100 -108 200 208', role: 'img' });
    picture.setAttribute('aria-label', `platter and head, ${one.name}`);
    svg('circle', picture, { r: 97, fill: 'currentColor', 'fill-opacity': 0.06,
      stroke: 'currentColor', 'stroke-opacity': 0.4 });
    const platter = svg('g', picture);
    svg('circle', platter, { r: 14, fill: 'none', stroke: 'currentColor' });
    svg('line', platter, { y1: -14, y2: -5, stroke: 'currentColor', 'stroke-width': 2 });
    const ring = (row, from, length, colour, opacity) => svg('path', platter, {
      d: arc(RADII[row], from, length), fill: 'none', stroke: colour, 'stroke-opacity': opacity,
      'stroke-width': RING });
    drive().tracks.forEach((track, row) => {
      ring(row, 0, 1, 'currentColor', 0.1);
      const first = Math.max(one.request.lbn, track.lbn);
      const end = Math.min(one.request.lbn + size().sectors, track.lbn + track.sectors);
      if (first < end) {
        const from = track.origin + (first - track.lbn) / track.slots;
        // A small request is drawn wide enough to be seen.
        ring(row, from, Math.max((end - first) / track.slots, 0.008), one.colour, 0.4);
      }
    });
    one.arcs = one.steps.filter((item) => item.phase === TRANSFER).map((item) => ({
      item, path: ring(item.row, 0, 0, one.colour, 1) }));
    drive().tracks.forEach((track, row) => {
      const turn = 2 * Math.PI * track.origin;
      const [x, y] = [Math.sin(turn), -Math.cos(turn)];
      const [inner, outer] = [RADII[row] - RING / 2, RADII[row] + RING / 2];
      svg('line', platter, { x1: x * inner, y1: y * inner, x2: x * outer, y2: y * outer,
        stroke: 'currentColor', 'stroke-width': 2.5 });
    });
    one.platter = platter;
    one.arm = svg('line', picture, { y1: -108, stroke: 'currentColor', 'stroke-width': 2 });
    one.head = svg('rect', picture, { x: -4, width: 8, height: RING + 2, rx: 2, fill: 'none',
      stroke: 'currentColor', 'stroke-width': 2.5 });
    one.status = html('div', box);
  }

  function drawLine(one) {
    const title = html('div', lines, '', 'caption');
    html('span', title, one.name, 'name').style.color = one.colour;
    html('span', title, `: ${ms(one.end)} ms at this angle, ${ms(one.mean)} ms on average`);
    const line = html('div', lines, '', 'line');
    for (const { phase, begin, end } of one.steps) {
      const part = html('span', line, '', phase === TRANSFER ? 'passing' : '');
      part.style.left = `${(begin / longest) * 100}%`;
      part.style.width = `${((end - begin) / longest) * 100}%`;
      part.style.background = phaseColour(one, phase);
      part.title = `${data.phases[phase].name}, ${ms(end - begin)} ms`;
    }
    one.cursor = html('i', line);
  }

  function drawTable() {
    table.textContent = '';
    const head = html('tr', html('thead', table));
    ['ms', 'aligned', 'unaligned'].forEach((text) => html('th', head, text));
    const body = html('tbody', table);
    const spent = (one, phase) => one.steps
      .filter((item) => item.phase === phase)
      .reduce((sum, item) => sum + item.end - item.begin, 0);
    const row = (name, values, colour, opacity = 1) => {
      const line = html('tr', body);
      const cell = html('td', line);
      if (colour) Object.assign(html('b', cell).style, { background: colour, opacity });
      cell.append(name);
      values.forEach((value) => html('td', line, ms(value)));
      return line;
    };
    sides.forEach((one) => { one.rows = []; });
    data.phases.forEach((phase, index) => {
      const values = sides.map((one) => spent(one, index));
      if (!values.some((value) => value > 0)) return;
      const colour = index === TRANSFER
        ? `linear-gradient(90deg, ${sides[0].colour} 50%, ${sides[1].colour} 50%)`
        : phaseColour(sides[0], index);
      const line = row(phase.name, values, colour, index === TRANSFER ? 1 : 0.65);
      sides.forEach((one, k) => { one.rows[index] = line.children[k + 1]; });
    });
    row('response time', sides.map((one) => one.end));
    row(`mean of ${data.angles} angles`, sides.map((one) => one.mean));
  }

  // --- Drawing ---

  function rebuild() {
    const start = Number(startRange.value);
    const turn = 360 / data.eighths;
    startText.textContent = `Unaligned start: ${start}/${data.eighths} of a track later`;
    angleText.textContent = `Platter at the request: ${angleRange.value * turn}°`;
    sides = [side(0, 'aligned', data.aligned), side(start, 'unaligned', data.unaligned)];
    longest = Math.max(...sides.map((one) => one.end));
    time.max = longest;
    platters.textContent = '';
    lines.textContent = '';
    sides.forEach(drawPlatter);
    sides.forEach(drawLine);
    drawTable();
    const zero = drive().zeroLatency ? 'with' : 'without';
    const slower = Math.round((SHOWN_REVOLUTION * 1000) / drive().revolution);
    caption.textContent = `${drive().model}: ${drive().rpm} rpm, ${zero} zero-latency access. `
      + `A request of ${size().sectors} sectors; a track has ${drive().tracks[0].sectors}. The `
      + `head comes from ${drive().seekCylinders} cylinders further in. Shown ${slower} times `
      + 'slower than the drive. Each ring is a track, with a mark at its first sector. The rings '
      + 'may lie on different surfaces, and their distances are not to scale.';
    draw(Math.min(now, longest));
  }

  function radius(item, share) {
    if (item.phase === SEEK) return START_RADIUS + (RADII[0] - START_RADIUS) * share;
    if (item.phase === SWITCH) {
      return RADII[item.row] + (RADII[item.row + 1] - RADII[item.row]) * share;
    }
    return RADII[item.row];
  }

  function draw(at) {
    now = at;
    time.value = Math.round(now);
    clock.textContent = `${ms(now)} ms`;
    for (const one of sides) {
      const index = one.steps.findIndex((item) => now < item.end);
      const item = index < 0 ? one.steps[one.steps.length - 1] : one.steps[index];
      const share = Math.min((now - item.begin) / (item.end - item.begin), 1);
      const sought = one.steps.find((other) => other.phase === SEEK);
      const r = sought && now < sought.begin ? START_RADIUS : radius(item, share);
      one.platter.setAttribute('transform', `rotate(${(-under(now) * 360).toFixed(2)})`);
      one.arm.setAttribute('y2', -r - RING / 2);
      one.head.setAttribute('y', -r - RING / 2 - 1);
      for (const { item: passed, path } of one.arcs) {
        const length = (Math.min(now, passed.end) - passed.begin) / drive().revolution;
        path.setAttribute('d', length > 0
          ? arc(RADII[passed.row], under(passed.begin), length) : '');
      }
      one.status.textContent = index < 0 ? 'complete' : data.phases[item.phase].name;
      one.cursor.style.left = `${(now / longest) * 100}%`;
      one.rows.forEach((cell, phase) => {
        cell.style.fontWeight = index >= 0 && phase === item.phase ? 'bold' : '';
      });
    }
  }

  // --- Time ---

  function pause() {
    last = null;
    play.textContent = 'Play';
  }

  function frame(stamp) {
    if (last === null) return;
    const elapsed = Math.max(stamp - last, 0) * (drive().revolution / SHOWN_REVOLUTION);
    last = stamp;
    draw(Math.min(now + elapsed, longest));
    if (now >= longest) pause();
    else requestAnimationFrame(frame);
  }

  play.addEventListener('click', () => {
    if (last !== null) return pause();
    if (now >= longest) draw(0);
    last = performance.now();
    play.textContent = 'Pause';
    requestAnimationFrame(frame);
  });

  // To the next end of a phase of either request.
  step.addEventListener('click', () => {
    pause();
    const ends = sides.flatMap((one) => one.steps.map((item) => item.end));
    draw(Math.min(...ends.filter((end) => end > now), longest));
  });

  back.addEventListener('click', () => {
    pause();
    draw(0);
  });

  time.addEventListener('input', () => {
    pause();
    draw(Number(time.value));
  });

  // Chooses the angle at which both requests take nearly as long as on average.
  function chooseAngle() {
    const starts = [0, startRange.value].map((start) => size().starts[start]);
    const distance = (angle) => starts.reduce((sum, { requests, mean }) =>
      sum + Math.abs(requests[angle][requests[angle].length - 1] - mean), 0);
    const angles = [...Array(data.eighths).keys()];
    angleRange.value = angles.reduce((a, b) => (distance(b) < distance(a) ? b : a));
  }

  function chooseDrive() {
    const chosen = sizeSelect.value || 3;
    sizeSelect.textContent = '';
    drive().sizes.forEach((one, index) => {
      html('option', sizeSelect, one.name).value = index;
    });
    sizeSelect.value = chosen;
  }

  driveSelect.addEventListener('change', () => {
    chooseDrive();
    chooseAngle();
    pause();
    now = 0;
    rebuild();
  });
  for (const control of [sizeSelect, startRange, angleRange]) {
    control.addEventListener('input', rebuild);
  }
  // The colours follow the theme.
  new MutationObserver(rebuild)
    .observe(document.documentElement, { attributes: true, attributeFilter: ['class'] });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', rebuild);

  chooseDrive();
  chooseAngle();
  rebuild();
}());
