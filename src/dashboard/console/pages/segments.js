// How a text travels: in the GSM 7-bit alphabet, or, if one character does not fit into it, in UCS-2; and in how many segments.
// The same as the service counts (rules/src/sms/segments.rs), so that one sees it while one writes.

const BASIC = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
);
const EXTENDED = new Set('\f^{}\\[~]|€');
/** Units in a message of one segment, and in each segment of a longer one. */
const SEPTETS = [160, 153];
const UNITS = [70, 67];

export function segmentsOf(body) {
  const characters = [...body];
  const isGsm = characters.every((one) => BASIC.has(one) || EXTENDED.has(one));
  const widths = characters.map((one) => (isGsm ? (EXTENDED.has(one) ? 2 : 1) : one.length));
  const [alone, each] = isGsm ? SEPTETS : UNITS;
  const encoding = isGsm ? 'gsm7' : 'ucs2';
  if (widths.reduce((sum, width) => sum + width, 0) <= alone) return { encoding, segments: 1 };
  let [segments, used] = [1, 0];
  for (const width of widths) {
    // A character is never cut in two.
    if (used + width > each) [segments, used] = [segments + 1, 0];
    used += width;
  }
  return { encoding, segments };
}
