type LogMethod = (fields: object, message: string) => void

/** The part of a structured logger that we use; pino has this shape. */
export interface Logger {
  error: LogMethod
  warn: LogMethod
  info: LogMethod
  debug: LogMethod
  child(fields: object): Logger
}

const nothing: LogMethod = () => {}

/** A logger that drops everything. */
export const silentLogger: Logger = {
  error: nothing,
  warn: nothing,
  info: nothing,
  debug: nothing,
  child: () => silentLogger,
}
