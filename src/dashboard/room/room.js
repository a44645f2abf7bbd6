// The page on which a person talks with the agent: what is shown, and what its buttons do.
// The body's `data-state` says where it stands: ready, asking, connecting, talking, ended or failed.
import { Line } from './room-line.js';
import { Captions, Keypad } from './room-parts.js';
import { ask, Meter } from './room-sound.js';
import { endings, failures, waitings } from './room-words.js';

const byId = (id) => document.getElementById(id);
const { body } = document;
const agent = body.dataset.agent;
const path = location.pathname.replace(/\/+$/, '');

/** An address below the room's link, with the link's signature. */
function address(below, more = {}) {
  const url = new URL(path + below, location.origin);
  url.searchParams.set('sig', new URLSearchParams(location.search).get('sig') ?? '');
  for (const [name, value] of Object.entries(more)) url.searchParams.set(name, value);
  return url;
}

/** What this tab remembers over a reload: that it was shown, who it is in the talk, and since when. */
const memory = {
  key: `callboard ${path}`,
  get() {
    try { return JSON.parse(sessionStorage.getItem(this.key)) ?? {}; } catch { return {}; }
  },
  put(change) {
    try { sessionStorage.setItem(this.key, JSON.stringify({ ...this.get(), ...change })); } catch { /* kept out: a reload starts anew */ }
  },
};

let line = null;
let microphone = null;
let clock = null;
let wakeLock = null;
/** Counts the tries to join, so that what comes late from an older one changes nothing. */
let round = 0;

const captions = new Captions(byId('captions'), byId('no-captions'), agent);
const keypad = new Keypad(byId('keypad'), byId('keys'), (keys) => line?.press(keys));
const heard = new Meter((level) => byId('meter').style.setProperty('--level', level.toFixed(2)));
const spoken = new Meter((level) => byId('agent-face').style.setProperty('--level', level.toFixed(2)));

// What is shown.

function show(state, view, heading) {
  body.dataset.state = state;
  for (const section of document.querySelectorAll('[data-view]')) section.hidden = section.dataset.view !== view;
  if (heading) byId(heading).focus({ preventScroll: true });
}

function showWaiting(state, words) {
  byId('waiting-title').textContent = words.title;
  byId('waiting-text').textContent = words.text(agent);
  show(state, 'waiting', 'waiting-title');
}

function showOver(state, { title, text, steps = [], retry }) {
  stop();
  byId('over-title').textContent = title;
  byId('over-text').textContent = text;
  byId('over-steps').replaceChildren(...steps.map((step) => Object.assign(document.createElement('li'), { textContent: step })));
  byId('over-face').className = `face ${state === 'failed' ? 'fault' : 'still'}`;
  byId('again').hidden = !retry;
  byId('again').textContent = retry ?? '';
  const words = byId('over-words');
  words.hidden = captions.empty;
  if (!captions.empty) words.append(byId('captions'));
  show(state, 'over', 'over-title');
}

function fail(code) {
  const known = failures[code] ? code : 'trouble';
  body.dataset.failure = code;
  showOver('failed', failures[known](agent));
}

function end(reason) {
  const since = memory.get().since;
  const lasted = since && body.dataset.state === 'talking' ? Math.max(0, Date.now() - since) : 0;
  memory.put({ participant: null, since: null });
  body.dataset.reason = reason;
  // Nobody was there to talk with.
  if (body.dataset.state === 'connecting' && reason !== 'you') return fail(reason === 'room_expired' ? 'gone' : 'absent');
  const words = (endings[reason] ?? endings.completed)();
  const said = [words.text, lasted >= 1000 && `You talked for ${duration(lasted)}.`, 'You can close this page.'];
  showOver('ended', { ...words, text: said.filter(Boolean).join(' ') });
}

function duration(ms) {
  const [minutes, seconds] = [Math.floor(ms / 60_000), Math.floor(ms / 1000) % 60];
  const named = (count, unit) => `${count} ${unit}${count === 1 ? '' : 's'}`;
  return minutes ? `${named(minutes, 'minute')} and ${named(seconds, 'second')}` : named(seconds, 'second');
}

function showTime() {
  const seconds = Math.max(0, Math.floor((Date.now() - (memory.get().since ?? Date.now())) / 1000));
  byId('timer').textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function showTrouble(text) {
  body.toggleAttribute('data-trouble', Boolean(text));
  byId('trouble').hidden = !text;
  byId('trouble').textContent = text ?? '';
  byId('line-status').textContent = text ? 'Connecting again…' : 'Connected';
}

function showMicrophoneTrouble(text) {
  byId('mic-trouble').hidden = !text;
  byId('mic-trouble').textContent = text ?? '';
}

/** Everything that listens, sounds or runs is let go. */
function stop() {
  round += 1;
  keypad.close();
  line?.close();
  line = null;
  letGo(microphone);
  microphone = null;
  heard.stop();
  spoken.stop();
  clearInterval(clock);
  byId('voice').srcObject = null;
  byId('unblock').hidden = true;
  showTrouble('');
  wakeLock?.release().catch(() => {});
  wakeLock = null;
}

const letGo = (stream) => stream?.getTracks().forEach((track) => {
  track.onended = null;
  track.stop();
});

// Joining.

async function join() {
  stop();
  const mine = round;
  delete body.dataset.failure;
  showMicrophoneTrouble('');
  showWaiting('asking', waitings.asking);
  let stream;
  try {
    stream = await ask();
  } catch (error) {
    if (mine === round) fail(error.code);
    return;
  }
  if (mine !== round) return letGo(stream);
  microphone = stream;
  // A reload does not turn a microphone on again.
  mute(Boolean(memory.get().participant && memory.get().muted));
  watchMicrophone();
  showWaiting('connecting', memory.get().participant ? waitings.rejoining : waitings.connecting);
  line = new Line({
    address,
    iceServers: JSON.parse(body.dataset.iceServers),
    microphone,
    participant: memory.get().participant,
    joinedAs: (participant) => memory.put({ participant }),
    voice: play,
    up: () => mine === round && showTrouble(''),
    trouble: () => mine === round && showTrouble('The connection is interrupted. Please stay: the page is joining again by itself.'),
    note: (note) => mine === round && take(note),
    down: (error) => mine === round && lost(error),
  });
  line.start();
}

/** The agent is there too. */
function talk() {
  if (body.dataset.state === 'talking') return;
  if (!memory.get().since) memory.put({ since: Date.now() });
  byId('captions-title').after(byId('captions'));
  heard.start(microphone);
  showTime();
  clock = setInterval(showTime, 500);
  show('talking', 'talking', 'talk-title');
  elsewhere?.postMessage('here');
  stayAwake();
}

function lost({ code }) {
  // There is nothing to come back to.
  if (['over', 'no_path', 'occupied'].includes(code)) memory.put({ participant: null, since: null });
  fail(code);
}

/** What the server tells in the data channel. */
function take(note) {
  // A page that was reloaded in a long talk is told its latest notes only.
  if (note.type === 'joined' || note.type === 'caption') talk();
  if (note.type === 'caption') captions.add(note);
  if (note.type === 'ended') end(String(note.reason));
}

function play(stream) {
  const voice = byId('voice');
  voice.srcObject = stream;
  spoken.start(stream);
  // Browsers may want a press before a page sounds; the press on Join is one, a reload is none.
  voice.play().then(() => { byId('unblock').hidden = true; }, (error) => {
    byId('unblock').hidden = error.name !== 'NotAllowedError';
  });
}

function mute(on) {
  for (const track of microphone?.getAudioTracks() ?? []) track.enabled = !on;
  body.dataset.muted = on;
  memory.put({ muted: on });
  const [icon, text] = [byId('mute').querySelector('use'), byId('mute').querySelector('span')];
  icon.setAttribute('href', on ? '#i-mic-off' : '#i-mic');
  text.textContent = on ? 'Unmute' : 'Mute';
  byId('mic-label').textContent = on ? 'Your microphone is off' : 'Your microphone';
}

/** A microphone that is unplugged ends its track: another one takes its place as soon as there is one. */
function watchMicrophone() {
  microphone.getAudioTracks()[0].onended = replaceMicrophone;
}

async function replaceMicrophone() {
  const mine = round;
  try {
    const stream = await ask();
    if (mine !== round) return letGo(stream);
    const off = body.dataset.muted === 'true';
    microphone = stream;
    watchMicrophone();
    mute(off);
    heard.start(microphone);
    await line?.speakInto(microphone);
    showMicrophoneTrouble('');
  } catch {
    if (mine === round) showMicrophoneTrouble(`${agent} cannot hear you: your microphone was disconnected. Plug one in, or check your browser's settings.`);
  }
}

async function stayAwake() {
  try {
    wakeLock = await navigator.wakeLock?.request('screen');
  } catch { /* the battery may forbid it */ }
}

function hangUp() {
  keypad.close();
  line?.hangUp();
  end('you');
}

// One tab talks: what was joined here is left in the others of this browser, or two would take turns for ever.
const elsewhere = 'BroadcastChannel' in window ? new BroadcastChannel(memory.key) : null;
elsewhere?.addEventListener('message', () => {
  if (!line) return;
  memory.put({ participant: null, since: null });
  fail('elsewhere');
});

byId('join').addEventListener('click', join);
byId('again').addEventListener('click', join);
byId('hang-up').addEventListener('click', hangUp);
byId('cancel').addEventListener('click', hangUpOrLeave);
byId('mute').addEventListener('click', () => mute(body.dataset.muted !== 'true'));
byId('unblock').addEventListener('click', () => play(byId('voice').srcObject));
navigator.mediaDevices?.addEventListener?.('devicechange', () => {
  if (microphone?.getAudioTracks()[0].readyState === 'ended') replaceMicrophone();
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && body.dataset.state === 'talking') stayAwake();
});
// The talk waits for a page that was reloaded; only a press hangs up.
addEventListener('pagehide', () => line?.close());
addEventListener('pageshow', ({ persisted }) => persisted && location.reload());

/** Before the microphone is allowed nothing has begun; afterwards the other side must know. */
function hangUpOrLeave() {
  if (line) return hangUp();
  stop();
  showReady();
  byId('join').focus();
}

// The beginning.

function showReady() {
  if (memory.get().participant) {
    byId('ready-title').textContent = 'You are still in this talk';
    byId('ready-lead').textContent = `${agent} will wait a short while for you. Rejoin to continue where you left off.`;
    byId('join').textContent = 'Rejoin';
    byId('facts').hidden = true;
  }
  byId('join').disabled = false;
  show('ready', 'ready');
}

/** A preview or a page that is loaded in advance is nobody's visit; a reload is no second one. */
async function tellViewed() {
  if (memory.get().viewed) return;
  if (document.prerendering) await new Promise((done) => document.addEventListener('prerenderingchange', done, { once: true }));
  const answer = await fetch(address('/viewed'), { method: 'POST' }).catch(() => null);
  if (answer?.ok) memory.put({ viewed: true });
  if (answer?.status === 404 && ['loading', 'ready'].includes(body.dataset.state)) fail('gone');
}

async function begin() {
  for (const initial of document.querySelectorAll('.initial')) initial.textContent = [...agent.trim()][0]?.toUpperCase() ?? '';
  tellViewed();
  if (!window.RTCPeerConnection) return fail('old_browser');
  if (!navigator.mediaDevices?.getUserMedia) return fail('insecure');
  const { participant } = memory.get();
  const allowed = participant && await navigator.permissions?.query({ name: 'microphone' }).catch(() => null);
  // Who reloads in the middle of a talk is back in it at once, unless the browser has to ask again.
  return allowed?.state === 'granted' ? join() : showReady();
}

begin();
