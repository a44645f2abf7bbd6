// Samples of a voice on their way: files that were chosen, and what was recorded here. All of it can be heard before it is sent.
import { ApiError } from '../../common.js';
import { Field } from '../form.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { decimal, duration } from '../format.js';
import { words } from '../words.js';
import { canRecord, record } from './recorder.js';

const text = words.voices;
/** Limits of the API. */
const MOST = 25;
const FEWEST = 3;
export const SHORTEST_SECONDS = 30;
const MEGABYTE = 1024 * 1024;
const MOST_BYTES = 25 * MEGABYTE;
const MOST_TOGETHER = 200 * MEGABYTE;
/** A little less strict than the service is: it measures more exactly, and has the last word. */
const QUIET_DB = -38;
const CLIPPED_SHARE = 0.01;
/** The range of the meter, decibels of full scale. */
const [FLOOR_DB, LOUD_DB] = [-60, -6];
/** After so many seconds it is told that nothing much is heard. */
const PATIENCE_SECONDS = 2;
/** Of the pieces that are heard one in so many is shown: some eight a second. */
const SHOWN_EACH = 3;

export const sizeOf = (bytes) => (bytes < MEGABYTE / 10 ? text.smallSize(decimal(bytes / 1024)) : text.size(decimal(bytes / MEGABYTE)));
const isShort = ({ seconds }) => seconds !== null && seconds < SHORTEST_SECONDS;

/** What is wrong with a sample as far as can be told here. */
function faultsOf({ seconds, loudness, clipped }) {
  return [
    isShort({ seconds }) && 'short', loudness !== undefined && loudness < QUIET_DB && 'quiet', clipped > CLIPPED_SHARE && 'clipped',
  ].filter(Boolean);
}

/** The samples that a form will send. `isBusy`: one is being recorded. */
export function useTakes() {
  const [takes, setTakes] = useState([]);
  const [isBusy, setIsBusy] = useState(false);
  const latest = useRef(takes);
  const count = useRef(0);
  latest.current = takes;
  useEffect(() => () => latest.current.forEach(({ url }) => URL.revokeObjectURL(url)), []);
  const made = (blob, rest) => ({ seconds: null, ...rest, blob, url: URL.createObjectURL(blob) });
  const add = (blob, rest) => setTakes((before) => [...before, made(blob, { key: ++count.current, ...rest })]);
  const change = (key, how) => setTakes((before) => before.flatMap((take) => (take.key === key ? how(take) : [take])));
  const gone = ({ url }) => URL.revokeObjectURL(url);
  return {
    takes, isBusy, setIsBusy, add,
    // Nobody says it all again because of a press on the wrong thing.
    isUnsent: takes.length > 0 || isBusy,
    replace: (key, blob, rest) => change(key, (take) => { gone(take); return [made(blob, { ...take, ...rest })]; }),
    drop: (key) => change(key, (take) => { gone(take); return []; }),
    measured: (key, seconds) => change(key, (take) => [take.seconds === seconds ? take : { ...take, seconds }]),
    clear: () => { takes.forEach(gone); setTakes([]); },
  };
}

const wrong = (why) => new ApiError(why, { param: 'samples' });

/** Refuses what the service would refuse, and, for a voice that has none yet, what cannot be trained. `has`: its samples so far. */
export function check({ takes, isBusy }, has = 0) {
  if (isBusy) throw wrong(text.stopFirst);
  const good = takes.filter((take) => !isShort(take)).length;
  if (has === 0 && good < FEWEST) throw wrong(text.tooFew(good));
  if (!takes.length) throw wrong(text.noneChosen);
  if (takes.length + has > MOST) throw wrong(text.tooMany);
  const big = takes.find(({ blob }) => blob.size > MOST_BYTES);
  if (big) throw wrong(text.fileTooBig(big.name));
  if (bytesOf(takes) > MOST_TOGETHER) throw wrong(text.allTooBig);
}

export const bytesOf = (takes) => takes.reduce((sum, { blob }) => sum + blob.size, 0);

export function formOf(takes, texts = {}) {
  const form = new FormData();
  for (const [name, value] of Object.entries(texts)) form.append(name, value);
  for (const { blob, fileName } of takes) form.append('samples', blob, fileName);
  return form;
}

/** Records one after the other; `done(recorded, key)` gets each, with the key of the take that it replaces. */
function useRecorder({ setIsBusy }, done) {
  const [state, setState] = useState({ phase: 'idle', seconds: 0, level: FLOOR_DB, isLoud: false, said: '', error: '' });
  const current = useRef(null);
  const isGone = useRef(false);
  const latest = useRef(null);
  latest.current = done;
  useEffect(() => () => {
    isGone.current = true;
    current.current?.recording?.drop();
  }, []);
  const stop = (why = text.recorded) => {
    const { recording, key } = current.current ?? {};
    if (!recording) return;
    current.current = null;
    const recorded = recording.stop();
    setIsBusy(false);
    setState((before) => ({ ...before, phase: 'idle', said: recorded ? why(duration(recorded.seconds)) : '', error: recorded ? '' : text.microphoneBusy }));
    if (recorded) latest.current(recorded, key);
  };
  const start = async (key = null) => {
    if (current.current) return;
    const mine = { key, recording: null };
    current.current = mine;
    setState({ phase: 'opening', seconds: 0, level: FLOOR_DB, isLoud: false, said: text.asks, error: '' });
    let [pieces, level, lastLoud] = [0, FLOOR_DB, -1];
    const heard = (seconds, now, isClipped) => {
      // Up at once, down slowly, as meters do.
      level = Math.max(now, level - 1);
      if (isClipped) lastLoud = seconds;
      pieces += 1;
      if (pieces % SHOWN_EACH) return;
      setState((before) => ({ ...before, seconds, level, isLoud: lastLoud >= 0 && seconds - lastLoud < 1 }));
    };
    try {
      const recording = await record(heard, () => stop(text.itStopped));
      if (isGone.current) return recording.drop();
      mine.recording = recording;
      setIsBusy(true);
      return setState((before) => ({ ...before, phase: 'recording', said: text.recording }));
    } catch (error) {
      current.current = null;
      return setState((before) => ({ ...before, phase: 'idle', said: '', error: error.message }));
    }
  };
  return { ...state, start, stop };
}

function Recorder({ recorder, button }) {
  const { phase, seconds, level, isLoud, said, error, start, stop } = recorder;
  const isRecording = phase === 'recording';
  const isQuiet = seconds > PATIENCE_SECONDS && level < QUIET_DB;
  const share = Math.min(Math.max((level - FLOOR_DB) / (LOUD_DB - FLOOR_DB), 0), 1);
  const [time, least] = [duration(seconds), duration(SHORTEST_SECONDS)];
  return html`
    <section class="stack tight panel recorder" aria-labelledby="recorder">
      <h3 id="recorder">${text.recorder}</h3>
      <details><summary>${text.readAloud}</summary><p lang="en">${text.passage}</p></details>
      <div class="now">
        <button type="button" ref=${button} class="button ${isRecording ? 'danger' : 'quiet'}"
          onClick=${() => (isRecording ? stop() : start())}>${isRecording ? text.stop : text.record}</button>
        ${isRecording && html`
          <meter min="0" max="1" low="0.35" high="0.95" optimum="0.6" value=${share} aria-label=${text.level}></meter>
          <span class="length">${seconds < SHORTEST_SECONDS ? text.lengthOf(time, least) : text.enough(time)}</span>`}
      </div>
      ${isRecording && html`<p class="error">${isLoud ? text.tooLoud : isQuiet ? text.tooQuiet : ''}</p>`}
      <p class="hint" role="status">${said}</p>
      ${error && html`<p class="error block" role="alert">${error}</p>`}
    </section>`;
}

function Take({ take, drop, again, measured, isBusy }) {
  const { key, name, blob, url, seconds, isRecorded } = take;
  const button = (word, label, act) => html`
    <button type="button" class="button quiet small" disabled=${isBusy} aria-label=${label} onClick=${() => act(key)}>${word}</button>`;
  // Some files do not say how long they are.
  const known = ({ target }) => Number.isFinite(target.duration) && measured(key, target.duration);
  return html`
    <li class="take">
      <p><strong class="wrap">${name}</strong> <span class="hint">${seconds === null ? text.unknownLength : duration(seconds)}, ${sizeOf(blob.size)}</span></p>
      ${faultsOf(take).map((fault) => html`<p class="error" key=${fault}>${text.verdict[fault]}</p>`)}
      <audio controls preload="metadata" src=${url} aria-label=${text.listen(name)} onLoadedMetadata=${isRecorded ? undefined : known}></audio>
      <div class="actions left">
        ${isRecorded && button(text.recordAgain, text.recordAgainOf(name), again)}
        ${button(text.drop, text.dropOf(name), drop)}
      </div>
    </li>`;
}

/** Chooses, records, and shows what there is. Stands in a form, whose error about `samples` is shown at the files. */
export function Samples({ of }) {
  const { takes, isBusy, add, drop, replace, measured } = of;
  const list = useRef(null);
  const button = useRef(null);
  const recordings = useRef(0);
  const recorder = useRecorder(of, ({ blob, ...rest }, key) => {
    if (key !== null) return replace(key, blob, rest);
    const number = ++recordings.current;
    return add(blob, { ...rest, name: text.take(number), fileName: `recording-${number}.wav`, isRecorded: true });
  });
  const choose = ({ target }) => {
    for (const file of [...target.files].slice(0, MOST)) add(file, { name: file.name, fileName: file.name });
    target.value = '';
  };
  // Whatever was wrong with the samples, they are others now: the form forgets it, as it does when somebody writes.
  useEffect(() => {
    list.current.closest('form')?.elements.samples?.dispatchEvent(new Event('input', { bubbles: true }));
  }, [takes.length, isBusy]);
  const remove = (key) => {
    drop(key);
    list.current.focus();
  };
  const again = (key) => {
    button.current.focus();
    recorder.start(key);
  };
  return html`
    <${Field} name="samples" label=${text.form.samples} hint=${text.form.samplesHint} type="file" multiple accept="audio/*,.wav,.mp3,.flac,.ogg,.oga" onChange=${choose} />
    ${canRecord() ? html`<${Recorder} recorder=${recorder} button=${button} />` : html`<p class="notice">${text.insecure}</p>`}
    <section class="stack tight" aria-labelledby="takes">
      <h3 id="takes" ref=${list} tabindex="-1">${text.takes}</h3>
      ${takes.length
        ? html`<ul class="takes">${takes.map((take) => html`<${Take} key=${take.key} ...${{ take, drop: remove, again, measured, isBusy }} />`)}</ul>`
        : html`<p class="muted">${text.noTakes}</p>`}
    </section>`;
}
