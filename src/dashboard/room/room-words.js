// What the page says, in plain words: while it waits, when it ends, and when something is wrong.

const link = 'Ask whoever sent you the link for a new one.';

export const waitings = {
  asking: { title: 'May we use your microphone?', text: (agent) => `Your browser is asking you now. Choose Allow, so that ${agent} can hear you.` },
  connecting: { title: 'Connecting…', text: (agent) => `${agent} is being called. This takes a moment.` },
  rejoining: { title: 'Joining again…', text: (agent) => `You are returning to your talk with ${agent}.` },
};

/** How a talk ended, by the service's words for it. */
export const endings = {
  you: () => ({ title: 'You hung up', text: 'The talk is over.' }),
  completed: () => ({ title: 'The talk has ended', text: 'Thank you.' }),
  max_duration: () => ({ title: 'The time is up', text: 'The time set for this talk is over.' }),
  silence_timeout: () => ({ title: 'The talk has ended', text: 'Nothing was heard for a while, so the talk was ended.', steps: [`Was your microphone on? ${link}`] }),
  opt_out: () => ({ title: 'The talk has ended', text: 'You asked not to be contacted again. That is noted.' }),
  consent_refused: () => ({ title: 'The talk has ended', text: 'You did not agree to be recorded, so the talk was ended.' }),
  ...Object.fromEntries(['agent_error', 'provider_error', 'media_timeout', 'unreachable', 'node_lost', 'credits_depleted', 'canceled'].map((reason) => [
    reason, () => ({ title: 'The talk was cut off', text: 'That was our fault, not yours.', steps: [link] }),
  ])),
};

/** What went wrong and what to do about it. `retry` names the button that tries again. */
export const failures = {
  denied: (agent) => ({
    title: 'Your microphone is blocked',
    text: `${agent} cannot hear you, because this page was not allowed to use your microphone.`,
    steps: ['Press the icon next to the address of this page (a lock, sliders or a microphone).', 'Allow the microphone there.', 'Then press Try again.'],
    retry: 'Try again',
  }),
  no_microphone: () => ({
    title: 'No microphone was found',
    text: 'A talk needs a microphone.',
    steps: ['Plug in a headset or a microphone, or open the link on your phone.', 'Then press Try again.'],
    retry: 'Try again',
  }),
  microphone_busy: () => ({
    title: 'Your microphone is busy',
    text: 'Another program or tab may be using it.',
    steps: ['Close other calls and programs that use the microphone.', 'If that does not help, unplug it and plug it in again.', 'Then press Try again.'],
    retry: 'Try again',
  }),
  insecure: () => ({
    title: 'This page is not safe for a talk',
    text: 'Browsers give the microphone only to pages whose address begins with https.',
    steps: ['Open the link with https:// in front.', `If that does not work: ${lower(link)}`],
  }),
  old_browser: () => ({
    title: 'This browser cannot hold a talk',
    text: 'It lacks what it takes to speak and listen.',
    steps: ['Update your browser, or open the link in a current Chrome, Edge, Firefox or Safari.'],
  }),
  gone: () => ({
    title: 'This link is not valid any more',
    text: 'It has expired, or the talk is over.',
    steps: [link],
  }),
  over: () => ({
    title: 'The talk has ended',
    text: 'It ended before you came back.',
    steps: [link],
  }),
  occupied: () => ({
    title: 'Somebody is already in this talk',
    text: 'Only one person at a time can use this link.',
    steps: ['Is it open in another tab or on another of your devices? Continue there.', `If it was not you: ${lower(link)}`],
    retry: 'Try again',
  }),
  elsewhere: () => ({
    title: 'You are in this talk in another tab',
    text: 'It continues there. You can close this page.',
  }),
  full: () => ({
    title: 'All lines are busy',
    text: 'Too many people are talking right now.',
    steps: [`Wait a minute or two, then ${lower(link)}`],
  }),
  too_many_tries: () => ({
    title: 'Too many tries',
    text: 'There were too many attempts in a short time.',
    steps: ['Wait a minute, then press Try again.'],
    retry: 'Try again',
  }),
  absent: (agent) => ({
    title: `${agent} cannot be reached`,
    text: 'Something is wrong on our side, not on yours.',
    steps: [link],
  }),
  unavailable: () => ({
    title: 'No talks can be held now',
    text: 'Whoever sent you this link cannot take calls at the moment.',
    steps: ['Tell them, and ask for a new link.'],
  }),
  network: () => ({
    title: 'The service cannot be reached',
    text: 'Your network may be down.',
    steps: ['Check that you are online.', 'Then press Try again.'],
    retry: 'Try again',
  }),
  no_path: () => ({
    title: 'No sound gets through',
    text: 'The page was reached, but your network does not let the talk through.',
    steps: ['Use another network (mobile data, for instance), or switch off your VPN.', link],
  }),
  lost: () => ({
    title: 'The connection is lost',
    text: 'The page tried to reconnect for half a minute, without success.',
    steps: ['Check that you are online.', 'Then press Try again; if the talk is over by then, ask for a new link.'],
    retry: 'Try again',
  }),
  trouble: () => ({
    title: 'Something is wrong on our side',
    text: 'The talk could not be started.',
    steps: ['Wait a moment, then press Try again.', `If that does not help: ${lower(link)}`],
    retry: 'Try again',
  }),
};

function lower(sentence) {
  return sentence[0].toLowerCase() + sentence.slice(1);
}
