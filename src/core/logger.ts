type LogMethod = (fields: object, message: string) => void

/** The levels of messages, the most important first. */
export const logLevels = ['error', 'warn', 'info', 'debug', 'trace'] as const

/** The importance of a message. */
export type LogLevel = (typeof logLevels)[number]

/** The part of a structured logger that we use; pino has this shape. */
export interface Logger extends Readonly<Record<LogLevel, LogMethod>> {
  child(fields: object): Logger
}

const nothing: LogMethod = () => {}

/** A logger that drops everything. */
export const silentLogger: Logger = {
  error: nothing,
  warn: nothing,
  info: nothing,
  debug: nothing,
  trace: nothing,
  child: () => silentLogger,
}
