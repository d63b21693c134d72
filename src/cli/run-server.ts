import { type Component, type Logger, runUntilDrained, systemClock } from '../core/index.ts'
import { ApiServer, type ServerOptions, type Serving } from '../server/index.ts'
import { dataDirectoryPath } from './data-directory.ts'
import type { Io } from './io.ts'
import { kubernetesVersion } from './kubernetes-version.ts'
import { serverProcess } from './server-process.ts'
import { createLogger } from './stderr-logger.ts'

/** What happens when a server answers, and what runs beside it from then on. */
export interface BesideServer {
  readonly onServing: (serving: Serving) => void
  readonly components?: (parts: {
    readonly serving: () => Serving
    readonly directory: string
    readonly log: Logger
  }) => readonly Component[]
}

/** Runs an API server until the process is asked to end. */
export async function runServer(
  options: ServerOptions,
  io: Io,
  { onServing, components = () => [] }: BesideServer,
): Promise<void> {
  const text = options.logFormat === 'text' || (options.logFormat === 'auto' && io.interactive)
  const log = createLogger({
    level: options.logLevel,
    format: text ? 'text' : 'json',
    clock: systemClock,
    write: (line) => io.stderr(line),
  })
  const directory = dataDirectoryPath(options.dataDir, io)
  const server = new ApiServer({
    options,
    dataDirectory: directory,
    version: await kubernetesVersion(),
    clock: systemClock,
    log,
    process: serverProcess(),
  })
  const beside = components({ serving: () => server.serving, directory, log })
  await runUntilDrained([server, ...beside], {
    drain: io.drain,
    kill: io.kill,
    graceMs: options.shutdownGracePeriod,
    log,
    onReady: () => onServing(server.serving),
  })
}
