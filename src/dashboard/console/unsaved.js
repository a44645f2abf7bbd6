// What somebody has written and not saved is not lost by a press on a link.
import { html, useEffect, useRef, useState } from './html.js';
import { Confirm } from './parts.js';
import { go } from './place.js';

/** The address of another page, if that is where a press leads. */
function leadsTo(event) {
  const link = event.target.closest?.('a[href]');
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.target || link.hasAttribute('download') || link.getAttribute('href').startsWith('#')) return null;
  return new URL(link.href).pathname === location.pathname ? null : link.href;
}

/** Stands where there is something to lose; `asks` are the words of the question. */
export function Unsaved({ asks }) {
  const [address, setAddress] = useState(null);
  const isLeaving = useRef(false);
  useEffect(() => {
    const press = (event) => {
      const found = leadsTo(event);
      if (!found) return;
      event.preventDefault();
      event.stopPropagation();
      setAddress(found);
    };
    const close = (event) => { if (!isLeaving.current) event.preventDefault(); };
    document.addEventListener('click', press, { capture: true });
    addEventListener('beforeunload', close);
    return () => {
      document.removeEventListener('click', press, { capture: true });
      removeEventListener('beforeunload', close);
    };
  }, []);
  const leave = () => {
    isLeaving.current = true;
    const { origin, pathname, search } = new URL(address);
    if (origin === location.origin && pathname.startsWith('/t/')) go(pathname + search);
    else location.assign(address);
  };
  return address && html`<${Confirm} asks=${asks} act=${leave} close=${() => setAddress(null)} />`;
}
