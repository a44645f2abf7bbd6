// Voices that are listened to.
import { call } from '../api.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { words } from '../words.js';

const text = words.voices;
/** Characters that are spoken. */
export const MOST_SAID = 500;

/** A sentence in the voice's language, if there is one. */
const sampleFor = ({ language }) => text.sample[(language ?? 'en').split('-')[0].toLowerCase()] ?? text.sample.en;

/** Lets voices speak, one at a time: `[speak(voice, words), { id, url }, hush]`. What comes after another was asked for is not heard. */
export function useSpeech() {
  const [sound, setSound] = useState(null);
  const latest = useRef(0);
  useEffect(() => () => { latest.current += 1; }, []);
  useEffect(() => () => { if (sound) URL.revokeObjectURL(sound.url); }, [sound]);
  const hush = () => {
    latest.current += 1;
    setSound(null);
  };
  const speak = async (voice, said) => {
    hush();
    const mine = latest.current;
    const wav = await call('POST', `/voices/${encodeURIComponent(voice.id)}/preview`, { text: said.trim() || sampleFor(voice) });
    if (mine === latest.current) setSound({ id: voice.id, url: URL.createObjectURL(wav) });
  };
  return [speak, sound, hush];
}

/** Speaks at once where the browser lets it, else when play is pressed. */
export const Heard = ({ sound, name }) => html`<audio key=${sound.url} controls autoplay src=${sound.url} aria-label=${text.heard(name)}></audio>`;
