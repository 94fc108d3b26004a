#!/bin/sh
# nanobot.sh DIR MODEL_URL PORT
# Run nanobot-ai 0.3.5 (`nanobot serve`) as a peer gateway on 127.0.0.1:PORT.
# DIR: an empty directory (home, config, workspace, tmp: all writes go there).
# MODEL_URL: OpenAI-compatible base URL, e.g. http://127.0.0.1:4321/v1
# Env: NANOBOT_VENV     venv to use or create (default ~/.cache/nanobot-venv)
#      NANOBOT_TIKTOKEN =0: leave out the tokenizer file (see below)
#      NANOBOT_SKILLS   =1: leave the 11 built-in skills on, as shipped. Off by
#                  default: nanobot parses their YAML several times a turn
# Ready when GET http://127.0.0.1:PORT/health answers 200. Stop with SIGTERM.
set -eu
[ $# -eq 3 ] || { echo "usage: nanobot.sh DIR MODEL_URL PORT" >&2; exit 2; }
mkdir -p "$1"
DIR=$(cd "$1" && pwd -P)
MODEL_URL=$2
PORT=$3
VENV=${NANOBOT_VENV:-$HOME/.cache/nanobot-venv}

# 1. The venv. `serve` needs aiohttp, which is only in the [api] extra.
if ! "$VENV/bin/python" -c 'import aiohttp, importlib.metadata as m, sys
sys.exit(m.version("nanobot-ai") != "0.3.5")' 2>/dev/null; then
    python3 -m venv "$VENV" >&2
    "$VENV/bin/pip" install -q --disable-pip-version-check 'nanobot-ai[api]==0.3.5' >&2
fi

# 2. The tokenizer. nanobot counts the tokens of every request with tiktoken's
# cl100k_base, which tiktoken downloads. Where that host cannot be reached,
# nanobot retries that download, blocking, at every count, and counts
# bytes as tokens. The same file (checked by its SHA-256) is in litellm's wheel.
TOK=9b5ad71b2ce5302211f9c61530b329a4922fc6a4
SHA=223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7
CACHE=$VENV/tiktoken-cache
if [ "${NANOBOT_TIKTOKEN:-1}" = 0 ]; then
    CACHE=$DIR/tiktoken-cache
elif [ ! -s "$CACHE/$TOK" ]; then
    mkdir -p "$CACHE/dl"
    "$VENV/bin/pip" download -q --disable-pip-version-check --no-deps \
        --only-binary :all: -d "$CACHE/dl" litellm==1.55.0 >&2
    "$VENV/bin/python" - "$CACHE" "$TOK" "$SHA" <<'PY'
import glob, hashlib, os, sys, zipfile
cache, tok, sha = sys.argv[1:]
z = zipfile.ZipFile(glob.glob(cache + "/dl/litellm-*.whl")[0])
data = z.read("litellm/litellm_core_utils/tokenizers/" + tok)
assert hashlib.sha256(data).hexdigest() == sha
with open(cache + "/.new", "wb") as f:
    f.write(data)
os.replace(cache + "/.new", cache + "/" + tok)
PY
    rm -rf "$CACHE/dl"
fi

# 3. Home, workspace, config.
SKILLS=
if [ "${NANOBOT_SKILLS:-0}" = 0 ]; then
    SKILLS='"clawhub", "cron", "github", "image-generation", "memory", "my", "skill-creator", "summarize", "tmux", "update-setup", "weather"'
fi
mkdir -p "$DIR/.nanobot" "$DIR/workspace" "$DIR/tmp" "$DIR/.cache" "$DIR/.config" "$DIR/.local/share"
cat >"$DIR/.nanobot/config.json" <<EOF
{
  "providers": {"custom": {"apiKey": "dummy", "apiBase": "$MODEL_URL"}},
  "agents": {"defaults": {
    "workspace": "$DIR/workspace",
    "provider": "custom",
    "model": "scripted",
    "maxTokens": 8192,
    "contextWindowTokens": 100000000,
    "maxToolIterations": 1000,
    "providerRetryMode": "standard",
    "timezone": "UTC",
    "idleCompactAfterMinutes": 0,
    "disabledSkills": [$SKILLS],
    "dream": {"enabled": false}
  }},
  "gateway": {"heartbeat": {"enabled": false}},
  "transcription": {"enabled": false},
  "api": {"host": "127.0.0.1", "port": $PORT, "timeout": 86400},
  "tools": {
    "restrictToWorkspace": true,
    "file": {"enable": true},
    "web": {"enable": false},
    "exec": {"enable": false},
    "my": {"enable": false},
    "cliApps": {"enable": false},
    "imageGeneration": {"enabled": false}
  }
}
EOF

# 4. As many connections as the hard limit allows; a clean environment.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || :
cd "$DIR/workspace"
exec env -i PATH="$VENV/bin:/usr/bin:/bin" HOME="$DIR" TMPDIR="$DIR/tmp" LANG=C.UTF-8 TZ=UTC \
    XDG_CACHE_HOME="$DIR/.cache" XDG_CONFIG_HOME="$DIR/.config" XDG_DATA_HOME="$DIR/.local/share" \
    PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore NO_COLOR=1 \
    TIKTOKEN_CACHE_DIR="$CACHE" \
    NANOBOT_MAX_CONCURRENT_REQUESTS=0 \
    NANOBOT_OPENAI_COMPAT_TIMEOUT_S=86400 NANOBOT_STREAM_IDLE_TIMEOUT_S=3600 \
    "$VENV/bin/nanobot" serve --config "$DIR/.nanobot/config.json" \
    --workspace "$DIR/workspace" --host 127.0.0.1 --port "$PORT" --timeout 86400
