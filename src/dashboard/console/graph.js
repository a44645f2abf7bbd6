// Numbers over time as bars, drawn by uPlot. Whoever uses it puts the same figures into a table, for those who do not see them.
import uPlot from './vendor/uplot.js';
import { count } from './format.js';
import { html, useEffect, useRef, useState } from './html.js';

const HEIGHT = 180;
/** The highest bar does not reach the top. */
const HEADROOM = 1.05;
/** Pixels that a label has below and beside the bars. */
const [LABEL_WIDTH, LABEL_HEIGHT] = [56, 28];
/** Steps of an axis that counts: nothing happens half a time. */
const WHOLE = Array.from({ length: 10 }, (_, n) => [1, 2, 5].map((step) => step * 10 ** n)).flat();

const dark = matchMedia('(prefers-color-scheme: dark)');

/** A colour of the style sheet, as it is by day or by night. */
export const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Calls `draw` when day becomes night; answers what ends that. */
export function onDusk(draw) {
  dark.addEventListener('change', draw);
  return () => dark.removeEventListener('change', draw);
}

const options = ({ width, marks, series, point }) => ({
  width,
  height: HEIGHT,
  legend: { show: false },
  cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
  hooks: { setCursor: [({ cursor }) => point(cursor.idx ?? null)] },
  scales: { x: { time: false, range: [-0.5, marks.length - 0.5] }, y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1) * HEADROOM] } },
  series: [{}, ...series.map(({ name, color }) => ({
    label: name, paths: uPlot.paths.bars({ size: [0.75, 48] }), width: 0, fill: () => ink(color), points: { show: false },
  }))],
  axes: [
    {
      stroke: () => ink('--muted'), grid: { show: false }, ticks: { show: false }, size: LABEL_HEIGHT, space: LABEL_WIDTH, incrs: WHOLE,
      values: (_, places) => places.map((place) => marks[place] ?? ''),
    },
    {
      stroke: () => ink('--muted'), grid: { stroke: () => ink('--line'), width: 1 }, ticks: { show: false }, size: LABEL_WIDTH, space: LABEL_HEIGHT, incrs: WHOLE,
      values: (_, places) => places.map(count),
    },
  ],
});

/**
 * `marks` names the places. `series`: `{ name, color, values }`, each drawn over the one before. What the pointer is at is told in
 * numbers, else the sums.
 */
export function Bars({ marks, series }) {
  const box = useRef(null);
  const [at, point] = useState(null);
  const drawn = JSON.stringify([marks, series]);
  useEffect(() => {
    const here = box.current;
    const figures = [marks.map((_, place) => place), ...series.map(({ values }) => values)];
    const plot = new uPlot(options({ width: here.clientWidth, marks, series, point }), figures, here);
    const fitted = new ResizeObserver(() => plot.setSize({ width: here.clientWidth, height: HEIGHT }));
    fitted.observe(here);
    const stop = onDusk(() => plot.redraw());
    return () => {
      stop();
      fitted.disconnect();
      plot.destroy();
    };
  }, [drawn]);
  const valueOf = (values) => (at === null ? values.reduce((sum, value) => sum + value, 0) : values[at] ?? 0);
  return html`
    <div class="graph" aria-hidden="true">
      <div class="plot" ref=${box}></div>
      <p class="legend">
        ${series.map(({ name, color, values }) => html`<span key=${name} class="ink ${color.slice(2)}">${name} ${count(valueOf(values))}</span>`)}
        <span class="muted">${at === null ? '' : marks[at]}</span>
      </p>
    </div>`;
}
