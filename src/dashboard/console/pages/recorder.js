// The microphone as a WAV file: 16 bit, mono, at the rate of the device. Nothing leaves the browser before it is sent.
import { words } from '../words.js';

const text = words.voices;
/** A sample that is longer makes no better voice. */
export const LONGEST_SECONDS = 180;
/** Of the API, with room for the head. */
const MOST_BYTES = 25 * 1024 * 1024 - 1_024;
const HEAD_BYTES = 44;
/** From here on it counts as cut off. */
const FULL_SCALE = 0.999;
/** Parts over which loudness is measured, seconds. */
const BLOCK_SECONDS = 0.4;

const WHY_NOT = {
  NotAllowedError: text.denied, SecurityError: text.denied, NotFoundError: text.noMicrophone, OverconstrainedError: text.noMicrophone,
};

/** Only addresses with https, and localhost, have a microphone. */
export const canRecord = () => Boolean(navigator.mediaDevices?.getUserMedia && globalThis.AudioWorkletNode);

const decibels = (power) => 10 * Math.log10(power + 1e-12);

/** How loud it is by and large, decibels of full scale; pauses do not count. Near to EBU R 128, by which the service measures. */
function loudnessOf(powers) {
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);
  const heard = powers.filter((power) => decibels(power) > -70);
  const threshold = decibels(mean(heard)) - 10;
  return decibels(mean(heard.filter((power) => decibels(power) > threshold)));
}

function wav(pieces, rate) {
  const samples = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const head = new DataView(new ArrayBuffer(HEAD_BYTES));
  const ascii = (at, letters) => [...letters].forEach((letter, n) => head.setUint8(at + n, letter.charCodeAt(0)));
  ascii(0, 'RIFF');
  head.setUint32(4, HEAD_BYTES - 8 + samples * 2, true);
  ascii(8, 'WAVEfmt ');
  head.setUint32(16, 16, true);
  head.setUint16(20, 1, true); // PCM
  head.setUint16(22, 1, true); // channels
  head.setUint32(24, rate, true);
  head.setUint32(28, rate * 2, true);
  head.setUint16(32, 2, true);
  head.setUint16(34, 16, true);
  ascii(36, 'data');
  head.setUint32(40, samples * 2, true);
  return new Blob([head, ...pieces], { type: 'audio/wav' });
}

async function microphone() {
  try {
    // As it is: what makes a call clear takes away from a voice. How far one sits from it is evened out.
    return await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: true },
    });
  } catch (error) {
    throw new Error(WHY_NOT[error.name] ?? text.microphoneBusy);
  }
}

/**
 * Records until `stop`, or until `over` is called: it is as long as may be, or the microphone is gone. Tells `heard(seconds, decibels,
 * isClipped)` with each piece. `stop` answers `{ blob, seconds, loudness, clipped }`, or null if nothing was heard; `drop` forgets it.
 */
export async function record(heard, over) {
  const stream = await microphone();
  const context = new AudioContext();
  const end = () => {
    stream.getTracks().forEach((track) => track.stop());
    if (context.state !== 'closed') context.close().catch(() => {});
  };
  try {
    await context.audioWorklet.addModule(new URL('./recorder_worklet.js', import.meta.url));
    await context.resume();
  } catch {
    end();
    throw new Error(text.microphoneBusy);
  }
  const { sampleRate: rate } = context;
  const pieces = [];
  const powers = [];
  let [length, clipped, power, inBlock, isOver] = [0, 0, 0, 0, false];
  const take = ({ data: sound }) => {
    if (isOver) return;
    const piece = new Int16Array(sound.length);
    let [loud, cut] = [0, 0];
    sound.forEach((value, n) => {
      const bounded = Math.max(-1, Math.min(1, value));
      piece[n] = Math.round(bounded * 32_767);
      loud += bounded * bounded;
      if (Math.abs(bounded) >= FULL_SCALE) cut += 1;
    });
    pieces.push(piece);
    length += piece.length;
    clipped += cut;
    power += loud;
    inBlock += piece.length;
    if (inBlock >= rate * BLOCK_SECONDS) {
      powers.push(power / inBlock);
      [power, inBlock] = [0, 0];
    }
    heard(length / rate, decibels(loud / piece.length), cut > 0);
    if (length / rate >= LONGEST_SECONDS || (length + piece.length) * 2 > MOST_BYTES) over();
  };
  // One channel, however many the device has. It is silent itself, and heard only while it leads somewhere.
  const node = new AudioWorkletNode(context, 'recorder', { channelCount: 1, channelCountMode: 'explicit' });
  node.port.onmessage = take;
  context.createMediaStreamSource(stream).connect(node).connect(context.destination);
  for (const track of stream.getTracks()) track.onended = () => { if (!isOver) over(); };
  const drop = () => {
    isOver = true;
    end();
  };
  const stop = () => {
    drop();
    if (!length) return null;
    if (!powers.length) powers.push(power / inBlock);
    return { blob: wav(pieces, rate), seconds: length / rate, loudness: loudnessOf(powers), clipped: clipped / length };
  };
  return { stop, drop };
}
