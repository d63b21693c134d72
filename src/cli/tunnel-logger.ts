import { type Logger, type LogLevel, systemClock } from '../core/index.ts'
import type { Io } from './io.ts'
import { createLogger } from './stderr-logger.ts'

/** From this number on upstream's programs tell what only their makers want to know. */
const debugVerbosity = 5

/** The logger of either end of the tunnel: our own options, and the verbosity of Go's programs. */
export function createTunnelLogger(
  options: {
    readonly v: number
    readonly logLevel: LogLevel
    readonly logFormat: 'auto' | 'text' | 'json'
  },
  io: Io,
): Logger {
  const isText = options.logFormat === 'text' || (options.logFormat === 'auto' && io.interactive)
  const isPlain = options.v < debugVerbosity || options.logLevel === 'trace'
  return createLogger({
    level: isPlain ? options.logLevel : 'debug',
    format: isText ? 'text' : 'json',
    clock: systemClock,
    write: (line) => io.stderr(line),
  })
}
