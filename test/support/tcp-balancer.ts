import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Spreads connections over ports of this machine in turn, as a load balancer of the fourth layer does. */
export class TcpBalancer {
  /** Where connections go; change it at any time. */
  readonly backends = new Set<number>()
  readonly #server = createServer((socket) => this.#accept(socket))
  readonly #open = new Set<Socket>()
  #turn = 0

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  static async start(...backends: readonly number[]): Promise<TcpBalancer> {
    const balancer = new TcpBalancer()
    for (const port of backends) balancer.backends.add(port)
    balancer.#server.listen(0, '127.0.0.1')
    await once(balancer.#server, 'listening')
    return balancer
  }

  async close(): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(near: Socket): void {
    const all = [...this.backends]
    const port = all[this.#turn++ % all.length]
    if (port === undefined) {
      near.destroy()
      return
    }
    const far = connect(port, '127.0.0.1')
    near.pipe(far).pipe(near)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#open.add(socket)
      socket
        .on('error', () => {})
        .once('close', () => {
          this.#open.delete(socket)
          other.destroy()
        })
    }
  }
}
