import { createServer } from 'node:net'

const lowest = 15_000
const highest = 32_000

/** Ports that nobody listens on, in the range that upstream's validation allows and below those that clients get. */
export async function freePorts(count: number): Promise<number[]> {
  const found = new Set<number>()
  while (found.size < count) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest))
    if (await isFree(port)) found.add(port)
  }
  return [...found]
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(false))
    server.listen(port, () => server.close(() => resolve(true)))
  })
}
