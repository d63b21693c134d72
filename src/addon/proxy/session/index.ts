export { liveSessions, sessionEntry } from './live-sessions.ts'
export type { CutReason, Session } from './session.ts'
export { SessionBook } from './session-book.ts'
