import { createServer } from 'node:net'

/** The first of `count` ports in a row that nobody listens on. */
export async function freePort(count = 1): Promise<number> {
  for (;;) {
    const first = await listening(0)
    const others = Array.from({ length: count - 1 }, (_, index) => first + 1 + index)
    const free = await Promise.all(others.map((port) => listening(port)))
    if (free.every((port) => port > 0)) return first
  }
}

/** Listens for a moment; 0 when the port is taken. */
function listening(port: number): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(0))
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(address instanceof Object ? address.port : 0))
    })
  })
}
