import { connect, type Socket } from 'node:net'
import { LoggedProcess } from './logged-process.ts'

// It listens, fills its own queue and never accepts; the kernel then drops every further SYN.
const listener = `
const server = require('node:net').createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 })
server.on('listening', () => {
  require('node:fs').writeSync(1, server.address().port + '\\n')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})`

/** An address that answers no attempt to connect, not even with a refusal. */
export interface Blackhole {
  readonly address: string
  close(): Promise<void>
}

/** Opens a blackhole on loopback; needs no root and no route. */
export async function openBlackhole(): Promise<Blackhole> {
  const program = new LoggedProcess(process.execPath, ['-e', listener])
  const port = Number(await program.said(/^\d+$/))
  const fillers: Socket[] = []
  for (;;) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    fillers.push(socket)
    const isConnected = await Promise.race([
      new Promise<boolean>((resolve) => socket.once('connect', () => resolve(true))),
      new Promise<boolean>((resolve) => setTimeout(resolve, 300, false)),
    ])
    if (!isConnected) break
  }
  return {
    address: `127.0.0.1:${port}`,
    async close() {
      for (const socket of fillers) socket.destroy()
      await program.stop('SIGKILL')
    },
  }
}
