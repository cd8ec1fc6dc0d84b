# peer-rl on the CPU.
#
#   docker build -t peer-rl .
#   docker run --rm -v "$PWD/runs:/work/runs" peer-rl train dqn --task gridworld/paper
#
# On x86-64, pip's usual torch brings gigabytes of CUDA. To avoid that, name the index of PyTorch's CPU builds:
#   docker build -t peer-rl --build-arg TORCH_INDEX=URL .
FROM python:3.11-slim

ARG EXTRAS=pybullet,mujoco,dmc,atari,sb3,report,video
ARG TORCH_INDEX=""

# g++ builds PyBullet and serves --compile; OSMesa draws MuJoCo's frames.
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ libosmesa6 \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir -c constraints.txt ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch \
 && pip install --no-cache-dir -c constraints.txt ".[$EXTRAS]" \
 && peer-rl doctor

RUN useradd --create-home researcher && mkdir -p /work/runs && chown -R researcher /work
USER researcher
WORKDIR /work
ENTRYPOINT ["peer-rl"]
CMD ["--help"]
