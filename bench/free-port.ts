import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const lowest = 10_240
const highest = 15_000

/**
 * The first of `count` ports in a row that nobody listens on: below those that the system hands out by itself, which
 * somebody else might get between this and their use.
 */
export async function freePort(count = 1): Promise<number> {
  for (;;) {
    const first = randomInt(lowest, highest - count)
    const ports = Array.from({ length: count }, (_, index) => first + index)
    const free = await Promise.all(ports.map(isFree))
    if (free.every(Boolean)) return first
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
