// How loud a recording is, from place to place. It is read as it comes, and nothing of it is kept: it may be a hundred megabytes.

/** Bytes of the head of a WAV file as the service makes them. Source: actors/adapters/src/recording/header.rs. */
const HEAD = 44;
const RIFF = 0x52494646;
const WAVE = 0x57415645;
const BITS = 16;
/** Places of each channel: more than a screen has pixels. */
const PLACES = 2_000;
const LOUDEST = 2 ** (BITS - 1);

/** What the head says: `{ channels, frames }`; null: it is another kind of file. */
function kindOf(head) {
  const view = new DataView(head.buffer, head.byteOffset, HEAD);
  const channels = view.getUint16(22, true);
  const isOurs = view.getUint32(0) === RIFF && view.getUint32(8) === WAVE && view.getUint16(34, true) === BITS && (channels === 1 || channels === 2);
  return isOurs ? { channels, frames: Math.floor(view.getUint32(40, true) / (channels * (BITS / 8))) } : null;
}

/** Takes the sound piece by piece, and keeps the loudest sample of each place. */
function meter({ channels, frames }) {
  const peaks = Array.from({ length: channels }, () => new Float32Array(PLACES));
  const scale = PLACES / Math.max(frames, 1);
  let count = 0;
  // A piece may end in the middle of a sample.
  let half = null;
  const sample = (word) => {
    const channel = peaks[count % channels];
    const place = Math.min(Math.floor(Math.floor(count / channels) * scale), PLACES - 1);
    const loud = Math.abs((word << BITS) >> BITS);
    if (loud > channel[place]) channel[place] = loud;
    count += 1;
  };
  const take = (bytes) => {
    let at = 0;
    if (half !== null && bytes.length) {
      sample(half | (bytes[0] << 8));
      [half, at] = [null, 1];
    }
    for (; at + 1 < bytes.length; at += 2) sample(bytes[at] | (bytes[at + 1] << 8));
    if (at < bytes.length) half = bytes[at];
  };
  return { peaks, take, share: () => Math.min(count / Math.max(frames * channels, 1), 1) };
}

/** The loudest is 1; silence stays silent. */
function louder(peaks) {
  const most = Math.max(...peaks.map((channel) => channel.reduce((most, peak) => Math.max(most, peak), 0))) || LOUDEST;
  return peaks.map((channel) => channel.map((peak) => peak / most));
}

function joined(one, two) {
  const both = new Uint8Array(one.length + two.length);
  both.set(one);
  both.set(two, one.length);
  return both;
}

/** One list for each channel of a WAV file of 16 bits, from 0 to 1; null: it is none. `tell` hears how much of it was read. */
export async function peaksOf(stream, tell) {
  const reader = stream.getReader();
  let [head, sound, told] = [new Uint8Array(0), null, 0];
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    let bytes = piece.value;
    if (!sound) {
      head = joined(head, bytes);
      if (head.length < HEAD) continue;
      const kind = kindOf(head);
      if (!kind) {
        reader.cancel();
        return null;
      }
      [sound, bytes] = [meter(kind), head.subarray(HEAD)];
    }
    sound.take(bytes);
    // A page that is drawn for each piece is slower than the reading.
    if (sound.share() - told > 0.02) tell(told = sound.share());
  }
  return sound && louder(sound.peaks);
}
