import process from 'node:process'
import {
  ApiServer,
  type ServerOptions,
  type Serving,
  type VersionInfo,
} from '../../apiserver/index.ts'
import { type Component, type Logger, runUntilDrained, systemClock } from '../../core/index.ts'
import { dataDirectoryPath } from '../cluster-source.ts'
import type { Io } from '../io.ts'
import { createLogger } from '../logger.ts'
import { serverProcess } from '../server-process.ts'
import { packageVersion } from '../version.ts'

/** The version of the Kubernetes API that we serve, as clients check it, with our own behind the plus. */
const served = { major: '1', minor: '36', patch: '3' }

/** What `/version` says. */
export async function kubernetesVersion(): Promise<VersionInfo> {
  const { major, minor, patch } = served
  return {
    major,
    minor,
    gitVersion: `v${major}.${minor}.${patch}+sallyport.${await packageVersion()}`,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: `node${process.versions.node}`,
    compiler: 'v8',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  }
}

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
