import {
  type Clock,
  type Logger,
  type LogLevel,
  logLevels,
  type RedactedText,
  redact,
  SallyportError,
  systemClock,
  visibleLine,
} from '../core/index.ts'
import type { Io } from './io.ts'

/** How and where log lines are written. */
export interface LoggerOptions {
  readonly level: LogLevel
  readonly format: 'text' | 'json'
  readonly clock: Clock
  write(line: RedactedText): void
}

// The second net: credentials travel as `Secret`, which prints as [redacted] by itself. The third is `redact`, by shape.
const secretName = /^(authorization|.*(token|password|secret|privatekey|keypem))$/i

function plain(value: unknown): unknown {
  if (!(value instanceof Error)) return value
  const { message, name, cause } = value
  const { code, detail } = value as { code?: unknown; detail?: unknown }
  return {
    name,
    message,
    ...(code !== undefined && { code }),
    ...(detail !== undefined && { detail }),
    ...(cause !== undefined && { cause: plain(cause) }),
    ...(!isForeseen(value) && { stack: value.stack }),
  }
}

/** An error of ours or of the system says all there is to say; only a mistake in the program needs its stack. */
const isForeseen = (error: Error): boolean => error instanceof SallyportError || 'syscall' in error

const withoutSecrets = (key: string, value: unknown): unknown =>
  secretName.test(key) && typeof value === 'string' ? '[redacted]' : plain(value)

function asText(level: LogLevel, fields: object, message: string, time: string): string {
  const shown = Object.entries(fields).map(([key, value]) => {
    const safe = withoutSecrets(key, value)
    if (typeof safe === 'string')
      return `${key}=${/[\s"]/.test(safe) ? JSON.stringify(safe) : safe}`
    if (value instanceof Error) return `${key}=${JSON.stringify(value.message)}`
    return `${key}=${JSON.stringify(value, withoutSecrets)}`
  })
  const line = `${time.slice(11, 23)} ${level.padEnd(5)} ${[message, ...shown].join('  ')}`
  return `${visibleLine(line)}\n`
}

function asJson(level: LogLevel, fields: object, message: string, time: string): string {
  const entry = { level, time, msg: message, ...fields }
  return `${JSON.stringify(entry, withoutSecrets)}\n`
}

/** A logger that writes one line per message. */
export function createLogger(options: LoggerOptions, context: object = {}): Logger {
  const render = options.format === 'json' ? asJson : asText
  const at = (level: LogLevel) =>
    logLevels.indexOf(level) > logLevels.indexOf(options.level)
      ? () => {}
      : (fields: object, message: string) => {
          const time = new Date(options.clock.now()).toISOString()
          options.write(redact(render(level, { ...context, ...fields }, message, time)))
        }
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    trace: at('trace'),
    child: (fields) => createLogger(options, { ...context, ...fields }),
  }
}

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
