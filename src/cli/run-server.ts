import { runUntilDrained, systemClock } from '../core/index.ts'
import { ApiServer, type ServerOptions, type Serving } from '../server/index.ts'
import { dataDirectoryPath } from './data-directory.ts'
import type { Io } from './io.ts'
import { kubernetesVersion } from './kubernetes-version.ts'
import { serverProcess } from './server-process.ts'
import { createLogger } from './stderr-logger.ts'

/** Runs an API server until the process is asked to end; `onServing` is called when it answers. */
export async function runServer(
  options: ServerOptions,
  io: Io,
  onServing: (serving: Serving) => void,
): Promise<void> {
  const text = options.logFormat === 'text' || (options.logFormat === 'auto' && io.interactive)
  const log = createLogger({
    level: options.logLevel,
    format: text ? 'text' : 'json',
    clock: systemClock,
    write: (line) => io.stderr(line),
  })
  const server = new ApiServer({
    options,
    dataDirectory: dataDirectoryPath(options.dataDir, io),
    version: await kubernetesVersion(),
    clock: systemClock,
    log,
    process: serverProcess(),
  })
  await runUntilDrained([server], {
    drain: io.drain,
    kill: io.kill,
    graceMs: options.shutdownGracePeriod,
    log,
    onReady: () => onServing(server.serving),
  })
}
