import type { Target } from '../options/index.ts'
import type { Check } from '../readiness.ts'
import { whyNoLink } from './dial-control-plane.ts'
import { type InterfaceMaker, provideAddress } from './dummy-interface.ts'
import { NodeListener, type NodeListenerParts } from './node-listener.ts'

/** What the local ports need. */
export interface NodeListenersParts extends NodeListenerParts {
  readonly targets: readonly Target[]
  /** Makes the bind address if nobody has it; absent when it is only waited for. */
  readonly interfaceMaker?: InterfaceMaker
}

/** The local ports of a node, one for each target. */
export class NodeListeners {
  readonly #parts: NodeListenersParts
  readonly #listeners: readonly NodeListener[]
  #opening: Promise<void> | undefined
  #isStopped = false

  constructor(parts: NodeListenersParts) {
    this.#parts = parts
    this.#listeners = parts.targets.map((target) => new NodeListener(target, parts))
  }

  /** The ports that are open, and what they stand for. */
  get open(): { readonly port: number; readonly address: string }[] {
    return this.#listeners.flatMap(({ port, target }) =>
      port === undefined ? [] : [{ port, address: target.address }],
    )
  }

  /** The conditions under which a node can reach the control plane. */
  get checks(): readonly Check[] {
    const firstProblem = (): string | undefined =>
      this.#listeners.map(({ problem }) => problem).find((problem) => problem !== undefined)
    return [
      { name: 'node-listeners', problem: firstProblem },
      { name: 'node-to-control-plane', problem: () => whyNoLink(this.#parts.links()) },
    ]
  }

  /** Begins to open the ports; those that cannot be opened yet are tried again. */
  start(): void {
    this.#opening ??= this.#open()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#opening
    await Promise.all(this.#listeners.map((listener) => listener.stop()))
  }

  async #open(): Promise<void> {
    const { bindAddress, interfaceMaker } = this.#parts
    if (interfaceMaker) await provideAddress(bindAddress, interfaceMaker)
    if (this.#isStopped) return
    for (const listener of this.#listeners) listener.start()
  }
}
