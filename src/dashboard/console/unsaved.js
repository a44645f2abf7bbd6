// What somebody has written and not saved is not lost by going elsewhere.
import { html, useEffect, useRef, useState } from './html.js';
import { Confirm } from './parts.js';
import { guardPage } from './place.js';
import { same } from './values.js';

/**
 * Stands where there is something to lose; `asks` are the words of the question. Who leaves the console is asked by the browser. `isView`: what
 * is written is lost by another view of the same page, too.
 */
export function Unsaved({ asks, isView = false }) {
  const [leave, setLeave] = useState(null);
  useEffect(() => {
    const close = (event) => event.preventDefault();
    addEventListener('beforeunload', close);
    const free = guardPage((go) => setLeave(() => go), isView);
    return () => {
      removeEventListener('beforeunload', close);
      free();
    };
  }, []);
  return leave && html`<${Confirm} asks=${asks} act=${leave} close=${() => setLeave(null)} />`;
}

/**
 * A form that stays when it is saved. It is drawn of `shown`, anew with each `edition`; `base` is what its changes are counted from, whatever
 * others save meanwhile. `type` is to be told of each input.
 */
export function useEdition(first) {
  const [form, setForm] = useState({ edition: 0, shown: first, base: first, isChanged: false, said: '' });
  const typed = useRef(0);
  const type = () => {
    typed.current += 1;
    if (!form.isChanged) setForm((now) => ({ ...now, isChanged: true, said: '' }));
  };
  const begin = (base) => setForm(({ edition, said }) => ({ edition: edition + 1, shown: base, base, isChanged: false, said }));
  /** Call it before `written` is sent, and what it answers with what was stored. What is typed in between stays, as not saved. */
  const saving = (written) => {
    const before = typed.current;
    return (stored, said) => setForm(({ edition, shown }) => (typed.current === before
      ? { edition: same(written, stored) ? edition : edition + 1, shown: stored, base: stored, isChanged: false, said }
      : { edition, shown, base: written, isChanged: true, said: '' }));
  };
  return { ...form, type, begin, saving };
}
