"""A telephone: PJSIP, told what to do by lines of JSON on its input, telling what happens by lines of JSON on its output.

The first argument is its configuration:
    port, rtp_port      what it listens on, at 127.0.0.1; RTP from there on
    transport           udp, tcp or tls; tls also listens on port for TLS with cert and key (PEM)
    user, domain        who it is: sip:user@domain
    register            optional: {"registrar", "username", "password", "expires"}
    codecs              optional: those it has, the best first, such as ["PCMU/8000"]
    srtp                "off" or "required"
    timer               optional: {"mode": "inactive|optional|required|always", "expires", "min"}
    prack               "off", "optional" or "required"
    behaviour           what it does with a call that comes in; a command changes it

A behaviour: {"ring_ms", "early", "early_ms", "code", "play", "loop", "tone_hz", "record", "hang_up_ms", "trying_only"}.
Times count from the INVITE (`ring_ms`, `early_ms`), and from the answer (`hang_up_ms`). `code` null: never answers.

Commands: behaviour, call, answer, hang_up, dtmf, info_digits, hold, resume, reinvite, refer, play, tone, quiet, stats, register, calls, quit.
Events: ready, incoming, state, media, dtmf, refer, notify, registered, stats, calls, playing, error.
"""
import json
import os
import queue
import sys
import threading
import time

import pjsua2 as pj

CONFIG = json.loads(sys.argv[1])
BEGAN = time.monotonic()
DUE = []  # (when, what): done by the one thread that may touch PJSIP
CALLS = {}


def now_ms():
    return round((time.monotonic() - BEGAN) * 1000)


def tell(event, **more):
    print(json.dumps({"event": event, "at_ms": now_ms(), **more}), flush=True)


def later(ms, what):
    DUE.append((time.monotonic() + ms / 1000, what))


def is_whole(file):
    with open(file, "rb") as wav:
        return int.from_bytes(wav.read(44)[40:], "little") > 0


def status(code):
    parameters = pj.CallOpParam()
    parameters.statusCode = code
    return parameters


def default(parameters):
    parameters.opt.audioCount = 1
    parameters.opt.videoCount = 0
    return parameters


class Call(pj.Call):
    def __init__(self, account, call_id, behaviour):
        super().__init__(account, call_id)
        self.account = account
        self.number = len(CALLS) + 1
        self.behaviour = behaviour
        self.sources = []
        self.recorder = None
        self.began_media = False
        self.is_over = False
        CALLS[self.number] = self

    def onCallState(self, _):
        info = self.getInfo()
        tell("state", call=self.number, state=info.stateText, code=info.lastStatusCode, reason=info.lastReason)
        if info.state == pj.PJSIP_INV_STATE_CONFIRMED and self.behaviour.get("hang_up_ms") is not None:
            later(self.behaviour["hang_up_ms"], lambda: self.hang_up(200))
        if info.state == pj.PJSIP_INV_STATE_DISCONNECTED:
            self.is_over = True
            # What is recorded is written out when the recorder goes; the bridge lets go of it later, in our own loop.
            later(0, self.let_go)

    def let_go(self):
        self.sources.clear()
        self.recorder = None
        self.wait_for_file(time.monotonic())

    def wait_for_file(self, since):
        """PJSIP writes the head of a recording last, at some beat of its clock: before that nobody can read it."""
        file = self.behaviour.get("record") if self.began_media else None
        if file and not is_whole(file) and time.monotonic() - since < 5:
            later(20, lambda: self.wait_for_file(since))
            return
        tell("gone", call=self.number)

    def onCallMediaState(self, _):
        info = self.getInfo()
        for index, media in enumerate(info.media):
            if media.type != pj.PJMEDIA_TYPE_AUDIO:
                continue
            codec = ""
            if media.status == pj.PJSUA_CALL_MEDIA_ACTIVE:
                codec = self.getStreamInfo(index).codecName
                later(0, self.begin_media)
            tell("media", call=self.number, status=media.status, direction=media.dir, codec=codec)

    def begin_media(self):
        if self.is_over:
            return
        audio = self.getAudioMedia(-1)
        if self.recorder is not None:
            audio.startTransmit(self.recorder)
        for source in self.sources:
            source.startTransmit(audio)
        if self.began_media:
            return
        self.began_media = True
        behaviour = self.behaviour
        if behaviour.get("record"):
            self.recorder = pj.AudioMediaRecorder()
            self.recorder.createRecorder(behaviour["record"])
            audio.startTransmit(self.recorder)
            tell("recording", call=self.number)
        if behaviour.get("play"):
            self.play(behaviour["play"], behaviour.get("loop", False))
        if behaviour.get("tone_hz"):
            self.tone(behaviour["tone_hz"])

    def play(self, file, loop):
        player = pj.AudioMediaPlayer()
        player.createPlayer(file, 0 if loop else pj.PJMEDIA_FILE_NO_LOOP)
        player.startTransmit(self.getAudioMedia(-1))
        self.sources.append(player)
        tell("playing", call=self.number)

    def tone(self, hz):
        generator = pj.ToneGenerator()
        generator.createToneGenerator(8000, 1)
        tone = pj.ToneDesc()
        tone.freq1, tone.freq2, tone.on_msec, tone.off_msec, tone.volume = hz, 0, 1000, 0, 12000
        tones = pj.ToneDescVector()
        tones.append(tone)
        generator.play(tones, True)
        generator.startTransmit(self.getAudioMedia(-1))
        self.sources.append(generator)
        tell("playing", call=self.number)

    def hang_up(self, code):
        if not self.is_over:
            self.hangup(status(code))

    def answer_with(self, code):
        if not self.is_over:
            self.answer(status(code))

    def onDtmfDigit(self, parameters):
        tell("dtmf", call=self.number, digit=parameters.digit, method=parameters.method)

    def onCallTransferRequest(self, parameters):
        tell("refer", call=self.number, to=parameters.dstUri)
        code = self.behaviour.get("refer_code", 603)
        parameters.statusCode = code
        if code < 300:
            # PJSIP itself calls there, and tells in NOTIFYs how that goes. Without a call of its own it would take the place of this one.
            parameters.newCall = Call(self.account, pj.PJSUA_INVALID_ID, {})

    def onCallTransferStatus(self, parameters):
        tell("notify", call=self.number, code=parameters.statusCode, final=parameters.finalNotify)


class Account(pj.Account):
    behaviour = CONFIG.get("behaviour", {})

    def onIncomingCall(self, parameters):
        call = Call(self, parameters.callId, dict(self.behaviour))
        info = call.getInfo()
        tell(
            "incoming",
            call=call.number,
            call_id=info.callIdString,
            remote=info.remoteUri,
            local=info.localUri,
            message=parameters.rdata.wholeMsg,
        )
        behaviour = call.behaviour
        if behaviour.get("trying_only"):
            return
        if behaviour.get("early"):
            later(behaviour.get("early_ms", 0), lambda: call.answer_with(183))
        else:
            call.answer_with(180)
        code = behaviour.get("code", 200)
        if code is not None:
            later(behaviour.get("ring_ms", 0), lambda: call.answer_with(code))

    def onRegState(self, parameters):
        tell("registered", code=parameters.code, expires=parameters.expiration, active=self.getInfo().regIsActive)


def command(account, asked):
    what = asked["do"]
    if what == "behaviour":
        Account.behaviour = asked["behaviour"]
        return
    if what == "calls":
        open_calls = [number for number, call in CALLS.items() if not call.is_over]
        tell("calls", open=open_calls, all=len(CALLS))
        return
    if what == "register":
        account.setRegistration(asked.get("on", True))
        return
    if what == "call":
        call = Call(account, pj.PJSUA_INVALID_ID, asked.get("behaviour", {}))
        parameters = default(pj.CallOpParam(True))
        for name, value in asked.get("headers", {}).items():
            header = pj.SipHeader()
            header.hName, header.hValue = name, value
            parameters.txOption.headers.append(header)
        call.makeCall(asked["to"], parameters)
        tell("calling", call=call.number)
        return
    call = CALLS[asked.get("call") or max(CALLS)]
    if what == "answer":
        call.answer_with(asked.get("code", 200))
    elif what == "hang_up":
        call.hang_up(asked.get("code", 200))
    elif what == "dtmf":
        call.dialDtmf(asked["digits"])
    elif what == "info_digits":
        for digit in asked["digits"]:
            parameters = pj.CallSendDtmfParam()
            parameters.method, parameters.duration, parameters.digits = pj.PJSUA_DTMF_METHOD_SIP_INFO, 160, digit
            call.sendDtmf(parameters)
    elif what == "hold":
        call.setHold(pj.CallOpParam())
    elif what in ("resume", "reinvite"):
        parameters = default(pj.CallOpParam())
        parameters.opt.flag = pj.PJSUA_CALL_UNHOLD if what == "resume" else 0
        call.reinvite(parameters)
    elif what == "refer":
        call.xfer(asked["to"], pj.CallOpParam())
    elif what == "play":
        call.play(asked["file"], asked.get("loop", False))
    elif what == "tone":
        call.tone(asked["hz"])
    elif what == "quiet":
        for source in call.sources:
            source.stopTransmit(call.getAudioMedia(-1))
        call.sources.clear()
    elif what == "stats":
        rtcp = call.getStreamStat(0).rtcp
        got, sent = rtcp.rxStat, rtcp.txStat
        tell(
            "stats",
            call=call.number,
            received=got.pkt,
            lost=got.loss,
            discarded=got.discard,
            reordered=got.reorder,
            jitter_us=got.jitterUsec.mean,
            sent=sent.pkt,
        )
    else:
        raise ValueError(f"no such command: {what}")


def endpoint():
    made = pj.Endpoint()
    made.libCreate()
    config = pj.EpConfig()
    config.logConfig.level = CONFIG.get("log", 0)
    config.logConfig.consoleLevel = CONFIG.get("log", 0)
    config.uaConfig.threadCnt = 0
    config.uaConfig.mainThreadOnly = True
    config.uaConfig.maxCalls = 32
    # Silence is sent too, and nothing is made better than it came.
    config.medConfig.noVad = True
    config.medConfig.ecTailLen = 0
    # The clock runs on: what is taken off the bridge goes at its next beat, and only then is a recording written out.
    config.medConfig.sndAutoCloseTime = -1
    made.libInit(config)
    return made


def listen(made):
    transport = pj.TransportConfig()
    transport.port = CONFIG["port"]
    transport.boundAddress = transport.publicAddress = "127.0.0.1"
    kind = CONFIG.get("transport", "udp")
    if kind == "tls":
        transport.tlsConfig.certFile = CONFIG["cert"]
        transport.tlsConfig.privKeyFile = CONFIG["key"]
        if CONFIG.get("ca"):
            transport.tlsConfig.CaListFile = CONFIG["ca"]
    kinds = {"udp": pj.PJSIP_TRANSPORT_UDP, "tcp": pj.PJSIP_TRANSPORT_TCP, "tls": pj.PJSIP_TRANSPORT_TLS}
    return made.transportCreate(kinds[kind], transport)


def account_config(transport):
    config = pj.AccountConfig()
    user, domain = CONFIG.get("user", "peer"), CONFIG.get("domain", f"127.0.0.1:{CONFIG['port']}")
    config.idUri = f"sip:{user}@{domain}"
    config.sipConfig.transportId = transport
    config.mediaConfig.transportConfig.boundAddress = "127.0.0.1"
    config.mediaConfig.transportConfig.port = CONFIG["rtp_port"]
    if CONFIG.get("srtp") == "required":
        config.mediaConfig.srtpUse = pj.PJMEDIA_SRTP_MANDATORY
        # Whether keys travel over TLS only is what the tests of the other side are about.
        config.mediaConfig.srtpSecureSignaling = 0
    timer = CONFIG.get("timer")
    if timer:
        modes = {
            "inactive": pj.PJSUA_SIP_TIMER_INACTIVE,
            "optional": pj.PJSUA_SIP_TIMER_OPTIONAL,
            "required": pj.PJSUA_SIP_TIMER_REQUIRED,
            "always": pj.PJSUA_SIP_TIMER_ALWAYS,
        }
        config.callConfig.timerUse = modes[timer["mode"]]
        config.callConfig.timerSessExpiresSec = timer.get("expires", 1800)
        config.callConfig.timerMinSESec = timer.get("min", 90)
    pracks = {
        "off": pj.PJSUA_100REL_NOT_USED,
        "optional": pj.PJSUA_100REL_OPTIONAL,
        "required": pj.PJSUA_100REL_MANDATORY,
    }
    config.callConfig.prackUse = pracks[CONFIG.get("prack", "off")]
    register = CONFIG.get("register")
    if register:
        config.regConfig.registrarUri = f"sip:{register['registrar']}"
        config.regConfig.timeoutSec = register.get("expires", 300)
    credentials = register or CONFIG.get("credentials")
    if credentials:
        known = pj.AuthCredInfo("digest", "*", credentials["username"], 0, credentials["password"])
        config.sipConfig.authCreds.append(known)
    return config


def main():
    made = endpoint()
    transport = listen(made)
    made.libStart()
    made.audDevManager().setNullDev()
    codecs = CONFIG.get("codecs")
    if codecs:
        for codec in made.codecEnum2():
            made.codecSetPriority(codec.codecId, 0)
        for rank, codec in enumerate(codecs):
            made.codecSetPriority(codec, 254 - rank)
    account = Account()
    account.create(account_config(transport))
    lines = queue.Queue()

    def read():
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    tell("ready", port=CONFIG["port"])
    while True:
        made.libHandleEvents(5)
        moment = time.monotonic()
        due = [entry for entry in DUE if entry[0] <= moment]
        for entry in due:
            DUE.remove(entry)
            attempt(entry[1])
        try:
            line = lines.get_nowait()
        except queue.Empty:
            continue
        if line is None:
            # Whoever had us is gone: no goodbye, and none is owed.
            os._exit(0)
        asked = json.loads(line)
        if asked["do"] == "quit":
            os._exit(0)
        attempt(lambda: command(account, asked))


def attempt(what):
    try:
        what()
    except Exception as error:  # the test is told, and decides
        tell("error", what=getattr(error, "reason", "") or repr(error))


main()
