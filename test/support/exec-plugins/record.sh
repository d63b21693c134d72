# Sourced by the stand-ins: notes each run in $RECORD, one line of exec info per run, and knows how to answer.
if [ -n "$RECORD" ]; then
  printf '%s\n' "$(printf %s "$KUBERNETES_EXEC_INFO")" >>"$RECORD"
fi

# The version asked for; it stands at the front of the exec info.
asked_version() {
  printf %s "$KUBERNETES_EXEC_INFO" |
    sed -n 's/^{"kind":"[^"]*","apiVersion":"\([^"]*\)".*/\1/p'
}

# answer STATUS [VERSION]: prints an ExecCredential with this status.
answer() {
  printf '{"kind":"ExecCredential","apiVersion":"%s","status":%s}\n' "${2:-$(asked_version)}" "$1"
}
