// What a call sounded like. Nothing of it is loaded before somebody asks for it: each time is noted in the log.
import { apiUrl } from '../api.js';
import { ink, onDusk } from '../graph.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { time } from '../format.js';
import { peaksOf } from '../peaks.js';
import WaveSurfer from '../vendor/wavesurfer.js';
import { words } from '../words.js';

const text = words.call.recording;
/** Of a longer one the browser would load hundreds of megabytes to draw it. */
const LONGEST_DRAWN_SECONDS = 30 * 60;
/** Pixels of each channel. The style sheet of the waveform has it, too, and is known to the policy: WAVEFORM_STYLE of console.rs. */
const LANE = 56;
/** Of the agent, and of the other side; as their words are. */
const INKS = ['--muted', '--accent'];
/** What was not heard yet is paler. */
const PALE = '66';

const canBeHeard = ({ recording_url: url }) => url !== null;
/** The one to hear, else the one that says why there is none. */
export const recordingOf = (recordings) => recordings.find(canBeHeard) ?? recordings[0];

const colors = (lanes) => ({
  splitChannels: lanes.map((_, n) => ({ waveColor: ink(INKS[n]) + PALE, progressColor: ink(INKS[n]) })),
  cursorColor: ink('--text'),
});

/** Both channels, one below the other. It follows the player, and leads it where it is pressed; the player's own controls do the same by keyboard. */
function Waveform({ peaks, seconds, player, lanes }) {
  const box = useRef(null);
  useEffect(() => {
    const wave = WaveSurfer.create({
      container: box.current, media: player.current, peaks, duration: seconds, height: LANE, barWidth: 2, barGap: 1, barRadius: 1, cursorWidth: 2,
      dragToSeek: true, ...colors(lanes),
    });
    const stop = onDusk(() => wave.setOptions(colors(lanes)));
    return () => {
      stop();
      wave.destroy();
    };
  }, [peaks]);
  return html`
    <div class="waveform" aria-hidden="true">
      <div class="lanes">${lanes.map((lane) => html`<span key=${lane}>${lane}</span>`)}</div>
      <div class="wave" ref=${box}></div>
    </div>`;
}

/** Reads the recording once, when it is asked to. */
function usePeaks(url) {
  const [state, setState] = useState({ peaks: null, share: null, error: null });
  const reading = useRef(null);
  useEffect(() => () => reading.current?.abort(), []);
  const read = async () => {
    if (reading.current) return;
    reading.current = new AbortController();
    setState({ peaks: null, share: 0, error: null });
    try {
      const answer = await fetch(url, { signal: reading.current.signal });
      if (!answer.ok) throw new Error((await answer.json().catch(() => null))?.error?.message ?? text.notSound);
      const peaks = await peaksOf(answer.body, (share) => setState({ peaks: null, share, error: null }));
      setState({ peaks, share: null, error: peaks ? null : text.notSound });
    } catch (error) {
      if (error.name !== 'AbortError') setState({ peaks: null, share: null, error: error instanceof TypeError ? text.notSound : error.message });
    }
    reading.current = null;
  };
  return { ...state, read };
}

function Player({ recording, player, onTime }) {
  const url = apiUrl(`/recordings/${recording.id}/audio`);
  const { peaks, share, error, read } = usePeaks(url);
  const seconds = recording.duration_seconds;
  const isDrawable = seconds <= LONGEST_DRAWN_SECONDS;
  const draw = () => { if (isDrawable && !peaks) read(); };
  return html`
    <audio ref=${player} controls preload="none" aria-label=${text.title} src=${url} onPlay=${draw}
      onTimeUpdate=${({ target }) => onTime(target.currentTime)} onSeeked=${({ target }) => onTime(target.currentTime)}></audio>
    ${peaks && html`<${Waveform} peaks=${peaks} seconds=${seconds} player=${player} lanes=${text.lanes[peaks.length === 2 ? 'dual' : 'mono']} />`}
    ${share !== null && html`<p role="status">${text.drawing} <progress max="1" value=${share} aria-label=${text.drawing}></progress></p>`}
    ${error && html`<p class="error block" role="alert">${error}</p>`}
    ${!isDrawable && html`<p class="hint">${text.tooLong}</p>`}
    <div class="actions left">
      ${isDrawable && !peaks && html`<button class="button quiet small" disabled=${share !== null} onClick=${draw}>${text.draw}</button>`}
      <a class="button quiet small" href=${url} download="${recording.id}.wav">${text.download}</a>
    </div>
    <p class="hint">${text.noted}</p>`;
}

/** Why there is nothing to hear, or until when there is. */
function stateOf({ status, error, purge_reason: purged, purge_after: until, ...recording }) {
  if (canBeHeard(recording)) return until && text.until(time(until));
  return text.because(text.status(status), status === 'purged' ? purged && text.purge(purged) : error);
}

export function Recording({ recording, player, onTime }) {
  const state = stateOf(recording);
  return html`
    <section class="stack tight panel call-sound" aria-labelledby="recording">
      <h2 id="recording">${text.title}</h2>
      ${canBeHeard(recording) && html`<${Player} key=${recording.id} recording=${recording} player=${player} onTime=${onTime} />`}
      ${state && html`<p class="hint wrap">${state}</p>`}
    </section>`;
}
