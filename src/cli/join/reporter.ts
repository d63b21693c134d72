import type { DiscoveryProgress, Proof } from '../../bootstrap/discovery/index.ts'
import type { JoinProgress } from '../../bootstrap/join/index.ts'
import { visibleLine } from '../../core/index.ts'
import { eraseLine, type Io } from '../io.ts'

const proofs: Readonly<Record<Proof, string>> = {
  'signed-answer': 'its answer is signed with the token',
  'signed-document': 'its document is signed with the token',
  pins: 'every root has one of the pins that were given',
  'second-fetch': 'it proved with its own CA who it is, and said the same again',
  'out-of-band': 'the document is well-formed and holds no secret',
  'system-roots': 'the document came from a server that this system trusts',
}

/** Without a terminal the same is not said more often. */
const repeatMs = 30_000
/** What is over sooner is not worth a line. */
const worthTellingMs = 1_500

/** Tells on stderr what a join does, line by line, and on a terminal how long it has been waiting. */
export class JoinReporter {
  readonly #io: Io
  readonly #now: () => number
  #waiting:
    | { readonly text: string; readonly since: number; readonly timer: NodeJS.Timeout }
    | undefined
  #held: NodeJS.Timeout | undefined

  constructor(io: Io, now: () => number) {
    this.#io = io
    this.#now = now
  }

  discovery(progress: DiscoveryProgress): void {
    switch (progress.step) {
      case 'asking':
        // Said once: while it waits, the line that waits says more.
        if (!this.#waiting) this.line(`Asking ${progress.address} for the cluster`)
        return
      case 'reading':
        return this.line(`Reading where the cluster is: ${progress.where}`)
      case 'proven':
        return this.line(`  ${proofs[progress.proof]}`)
      case 'probing':
        return this.line(`Trying the address that the cluster announces: ${progress.address}`)
      case 'warning':
        return this.line(`warning: ${progress.message}`)
      case 'waiting':
        return this.#wait(`  not yet: ${progress.failure.message}`, progress.failure.hint)
    }
  }

  join(progress: JoinProgress): void {
    if (progress.step === 'requested') {
      const what = progress.resumed
        ? 'Found the request of an earlier run'
        : 'Asked for a certificate'
      return this.line(`${what}: ${progress.request}`)
    }
    // Of a node both take a moment only, unless an administrator has to see to it.
    this.#later(() => {
      if (progress.approved) return this.#wait('  it is approved; waiting for the signature')
      this.#wait(
        '  waiting for approval',
        `an administrator approves it with: kubectl certificate approve ${progress.request}`,
      )
    })
  }

  /** One finished line; ends whatever was waiting. */
  line(text: string): void {
    this.end()
    this.#io.stderr(`${visibleLine(text)}\n`)
  }

  /** A line of the log, which changes nothing about what is waited for. */
  log(line: string): void {
    const isCounting = this.#io.interactive && this.#waiting !== undefined
    this.#io.stderr(isCounting ? `${eraseLine}${line}` : line)
  }

  /** Stops counting; call it before anything else is printed. */
  end(): void {
    clearTimeout(this.#held)
    if (!this.#waiting) return
    clearInterval(this.#waiting.timer)
    if (this.#io.interactive) this.#io.stderr(eraseLine)
    this.#waiting = undefined
  }

  #later(tell: () => void): void {
    clearTimeout(this.#held)
    this.#held = setTimeout(tell, worthTellingMs)
  }

  #wait(text: string, hint?: string): void {
    if (this.#waiting?.text === text) return
    this.end()
    this.#io.stderr(`${visibleLine(text)}\n`)
    if (hint) this.#io.stderr(`    ${visibleLine(hint)}\n`)
    const timer = setInterval(() => this.#tick(), this.#io.interactive ? 1_000 : repeatMs)
    timer.unref()
    this.#waiting = { text, since: this.#now(), timer }
  }

  #tick(): void {
    if (!this.#waiting) return
    const seconds = Math.round((this.#now() - this.#waiting.since) / 1000)
    const text = `  still waiting, for ${seconds} s`
    this.#io.stderr(this.#io.interactive ? `${eraseLine}${text}` : `${text}\n`)
  }
}
