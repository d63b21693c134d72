import { setTimeout as delay } from 'node:timers/promises'
import type { OutsideVerifier } from './outside-verifier.ts'
import type { RotatingIssuer } from './rotating-issuer.ts'

/** For whom the tokens are, and of whom they speak. */
export const audience = 'vault'
export const subject = 'system:serviceaccount:default:bot'
/** How many tokens each stage of a rotation sees at least. */
export const tokensPerStage = 20
/** Between tokens, to leave the machine to others. */
const pauseMs = 50

/** An issuer and the libraries that follow it. */
export interface Scene {
  readonly issuer: RotatingIssuer
  readonly verifiers: readonly OutsideVerifier[]
}

/** Asks every verifier about new tokens and old ones, and notes what none of them may say. */
export class VerifyingLoop {
  readonly scene: Scene
  readonly failures: string[] = []
  readonly verified = new Map<string, number>()
  /** The keys by which tokens were signed. */
  readonly kids = new Set<string>()
  #tokens: string[] = []

  constructor(scene: Scene) {
    this.scene = scene
  }

  /** Goes on for some tokens, and until `isOver`. */
  async run(stage: string, isOver = () => true): Promise<void> {
    for (let count = 0; count < tokensPerStage || !isOver(); count++) {
      const fresh = await this.scene.issuer.newToken(audience)
      this.#tokens.push(fresh)
      this.kids.add(kidOf(fresh))
      const old = this.#tokens[(count * 7) % this.#tokens.length] ?? fresh
      for (const token of [fresh, old]) await this.#judge(stage, token)
      await delay(pauseMs)
    }
  }

  /** Leaves out the tokens so far: the key of some of them is gone. */
  forget(): void {
    this.#tokens = []
  }

  async #judge(stage: string, token: string): Promise<void> {
    const one = async (verifier: OutsideVerifier): Promise<void> => {
      const verdict = await verifier.judge(token)
      if (verdict.ok && verdict.sub === subject)
        this.verified.set(verifier.name, (this.verified.get(verifier.name) ?? 0) + 1)
      else this.failures.push(`${stage}: ${verifier.name}: ${JSON.stringify(verdict)}`)
    }
    await Promise.all(this.scene.verifiers.map(one))
  }
}

const kidOf = (token: string): string =>
  JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid
