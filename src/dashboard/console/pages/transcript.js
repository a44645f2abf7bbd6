// What was said in a call, and which functions were called meanwhile.
import { apiUrl, call } from '../api.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { count, duration } from '../format.js';
import { whileSeen } from '../live.js';
import { words } from '../words.js';
import { Code, pretty } from './pieces.js';

const text = words.call;
/** Characters of what a function was told and has answered, up to which they are seen at once. */
const SHORT = 600;
/** Seconds between a turn's beginning and the latency that was noted for it, at most. */
const NEAR = 2;
/** After so long a stream that was cut is opened anew. */
const RETRY_MS = 5_000;
/** Pixels from its end at which a list still counts as read to the end. */
const AT_END = 40;

/**
 * What was said so far. While it lasts by the call's own stream: each turn as it begins, and again when its words are known. Afterwards,
 * and where there is no stream, as it was stored.
 */
export function useTurns(id, isLive) {
  const [turns, setTurns] = useState(null);
  const [error, setError] = useState(null);
  const [again, setAgain] = useState(0);
  useEffect(() => {
    if (isLive === null) return undefined;
    let [source, timer] = [null, null];
    const stored = async () => {
      try {
        const { turns: all } = await call('GET', `/sessions/${id}/transcript.json`);
        setTurns(new Map(all.entries()));
        setError(null);
      } catch (failed) {
        setError(failed);
      }
    };
    if (!isLive) {
      stored();
      return undefined;
    }
    const take = (place, turn) => setTurns((before) => new Map(before).set(place, { ...before?.get(place), ...turn }));
    const close = () => {
      clearTimeout(timer);
      source?.close();
    };
    const open = () => {
      close();
      setTurns((before) => before ?? new Map());
      source = new EventSource(apiUrl(`/sessions/${id}/stream`));
      source.addEventListener('turn', ({ data, lastEventId }) => take(Number(lastEventId), JSON.parse(data)));
      source.addEventListener('words', ({ data }) => {
        const { place, content } = JSON.parse(data);
        take(place, { content });
      });
      source.addEventListener('end', () => source.close());
      source.onopen = () => setError(null);
      source.onerror = () => {
        if (source.readyState === EventSource.CLOSED) setError(new Error(text.noStream));
        close();
        // Another one tells every turn again, with the words that were missed; one that goes on does not.
        timer = setTimeout(open, RETRY_MS);
      };
    };
    return whileSeen(open, close);
  }, [id, isLive, again]);
  const data = turns && [...turns].sort(([one], [two]) => one - two).map(([, turn]) => turn);
  return { data, error, reload: () => setAgain((before) => before + 1) };
}

/** How long the other side has waited for each of the agent's turns, in milliseconds: the timeline tells it at about the turn's beginning. */
export function waitsOf(entries, startedAt, turns) {
  const waits = new Map();
  for (const { at, kind, detail } of entries) {
    const [, ms] = (kind === 'turn_latency' && /packet (\d+) ms/.exec(detail)) || [];
    if (!ms) continue;
    const t = (new Date(at) - new Date(startedAt)) / 1000;
    const far = (place) => Math.abs(turns[place].t - t);
    const isSpoken = (place) => turns[place].role === 'agent' && turns[place].content;
    const spoken = [...turns.keys()].filter((place) => isSpoken(place) && far(place) < NEAR && !waits.has(place));
    const nearest = spoken.reduce((best, place) => (best === null || far(place) < far(best) ? place : best), null);
    if (nearest !== null) waits.set(nearest, Number(ms));
  }
  return waits;
}

/** Each of the agent's calls with the turn that answers it, and with what became of it if the call's last event says so. */
function toolsOf(turns, invocations) {
  const answers = new Map(turns.filter(({ role }) => role === 'tool').map((turn) => [turn.tool_call_id, turn]));
  const made = turns.flatMap(({ t, tool_calls: calls = [] }) => calls.map((one) => ({ ...one, t, answer: answers.get(one.id) })));
  // They come in the order in which they ended: a name tells only where its calls and its ends are as many.
  const of = (name) => [made.filter((one) => one.name === name), invocations.filter((one) => one.name === name)];
  return new Map(made.map((one) => {
    const [calls, ends] = of(one.name);
    return [one.id, { ...one, status: calls.length === ends.length ? ends[calls.indexOf(one)].status : null }];
  }));
}

function Tool({ tool: { name, arguments: told, answer, t, status }, isLive }) {
  const [asked, answered] = [JSON.stringify(told, null, 2), pretty(answer?.content ?? '')];
  const state = [status && text.tool.status(status), answer && text.tool.took(count(Math.round((answer.t - t) * 1000)))].filter(Boolean).join(', ');
  return html`
    <details class="tool-call" open=${asked.length + answered.length < SHORT}>
      <summary><span class="wrap">${text.calls(name)}</span>${state && html` <span class="hint">${state}</span>`}</summary>
      <p class="hint">${text.tool.arguments}</p><${Code} label="${name}: ${text.tool.arguments}" text=${asked} />
      <p class="hint">${text.tool.answer}</p>
      ${answer ? html`<${Code} label="${name}: ${text.tool.answer}" text=${answered} />` : html`<p>${isLive ? text.tool.waiting : text.tool.none}</p>`}
    </details>`;
}

function Turn({ turn: { role, content, t, tool_calls: calls = [] }, place, isCurrent, wait, tools, isLive, seek }) {
  const isTool = !content && calls.length > 0;
  const when = duration(t);
  const time = seek ? html`<button class="plain" aria-label=${text.hearAt(when)} onClick=${() => seek(t)}>${when}</button>` : when;
  return html`
    <li class="turn ${isTool ? 'tool' : role}" id="turn-${place}" tabindex="-1" aria-current=${isCurrent ? 'true' : undefined}>
      <span class="speaker">${text.speaker(isTool ? 'tool' : role)} ${time}${wait !== undefined && ` · ${text.wait(count(wait))}`}</span>
      ${content ? html`<p>${content}</p>` : !isTool && html`<p class="muted">${text.unheard}</p>`}
      ${calls.map(({ id }) => html`<${Tool} key=${id} tool=${tools.get(id)} isLive=${isLive} />`)}
    </li>`;
}

/** `current`: the place of the turn that is heard. The list follows it, and while the call lasts its own end, unless somebody reads elsewhere. */
export function Transcript({ turns, isLive, current, seek, waits, invocations }) {
  const list = useRef(null);
  const isAtEnd = useRef(true);
  const last = turns.at(-1);
  useEffect(() => {
    const [box, turn] = [list.current, document.getElementById(`turn-${current}`)];
    if (box && turn) box.scrollTop += turn.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
  }, [current]);
  useEffect(() => {
    if (isLive && isAtEnd.current && list.current) list.current.scrollTop = list.current.scrollHeight;
  }, [isLive, turns.length, last?.content]);
  if (!turns.length) return html`<p class="muted">${isLive ? text.notYet : text.silent}</p>`;
  const tools = toolsOf(turns, invocations);
  const scrolled = ({ target }) => { isAtEnd.current = target.scrollHeight - target.scrollTop - target.clientHeight < AT_END; };
  // What a function has answered stands with its call.
  const isShown = ({ role, tool_call_id: id }) => role !== 'tool' || !tools.has(id);
  return html`
    <ol class="turns scrolls" ref=${list} tabindex="0" aria-labelledby="words" aria-live=${isLive ? 'polite' : 'off'} onScroll=${scrolled}>
      ${turns.map((turn, place) => isShown(turn) && html`
        <${Turn} key=${place} turn=${turn} place=${place} isCurrent=${place === current} wait=${waits.get(place)} tools=${tools} isLive=${isLive} seek=${seek} />`)}
    </ol>`;
}

/** Leads to a turn; what a function has answered stands in the turn before. */
export function showTurn(place) {
  const turn = document.getElementById(`turn-${place}`) ?? document.getElementById(`turn-${place - 1}`);
  turn?.scrollIntoView({ block: 'center' });
  turn?.focus({ preventScroll: true });
}
