"""Temporary, until helper C's is merged."""
import torch
from torch import Tensor
from torch.nn import functional as F
def _crop(x, size, rng):
    b,c,h,w=x.shape
    top=torch.randint(h-size+1,(b,),generator=rng); left=torch.randint(w-size+1,(b,),generator=rng)
    rows=top[:,None]+torch.arange(size); cols=left[:,None]+torch.arange(size)
    return x[torch.arange(b)[:,None,None],:,rows[:,:,None],cols[:,None,:]].permute(0,3,1,2)
def crop_pad_crop(x: Tensor, crop: int, rng) -> Tensor:
    side=x.shape[-1]
    return _crop(F.pad(_crop(x,crop,rng).float(),(4,)*4,mode="replicate").to(x.dtype),side,rng)
